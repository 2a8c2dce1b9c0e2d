"""`python -m verify`: judge the claims, explain one, calibrate the judge, draw the figures, or write the report.

Exit codes: 0 if every judged claim has its expected verdict, 1 if not, 2 on a usage error.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from derivations.core import Chapter
    from verify.cluster import Cluster

OUT = "verification"
FIGURES = "figures"
PAGES = "report"  # in the directory of the draws
COMMANDS = ("explain", "calibrate", "figures", "report")
_EPILOG = """commands:
  python -m verify explain CLAIM         the sentence, the numbers, the verdict and why
  python -m verify calibrate [NAME ...]  count false alarms and missed rivals over many seeds (--seeds N)
  python -m verify data FILE             compare a matrix of your own with the law (see data --help)
  python -m verify figures [CHAPTER ...] the figures of each chapter, as SVG and PNG, with their captions
  python -m verify report [CHAPTER ...]  HTML pages of laws, derivations and stored verdicts"""


def main(arguments: Sequence[str] | None = None, chapters: Sequence[Chapter] | None = None) -> int:
    """Run the command line and return the exit code. `chapters` replaces the chapters that are found."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # before NumPy is imported: the processes share the cores among them
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["data"]:  # a matrix of the user's own: options of its own, no claims
        from verify.data import main as examine

        return examine(arguments[1:])
    command = arguments.pop(0) if arguments and arguments[0] in COMMANDS else "judge"
    try:
        options = _parser(command).parse_args(arguments)
    except SystemExit as ended:  # argparse: 0 after --help, 2 after an error that it has printed
        return int(ended.code or 0)

    from verify.run import RunError, UsageError
    from verify.store import StoreError

    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _COMMANDS[command](options, chapters)
    except (UsageError, StoreError) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"verify: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("verify: stopped; what was drawn is stored", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


_NAMES = {"figures": "CHAPTER or FIGURE", "report": "CHAPTER"}


def _parser(command: str) -> argparse.ArgumentParser:
    name = "python -m verify" if command == "judge" else f"python -m verify {command}"
    parser = argparse.ArgumentParser(
        prog=name,
        description={
            "judge": "Judge the claims of the named chapters, or the named claims (default: all).",
            "explain": "Explain one claim and its verdict, from stored draws; missing ones are drawn.",
            "calibrate": "Count false alarms and missed rivals over many seeds.",
            "figures": "Draw the figures of the named chapters, or the named figures (default: all).",
            "report": "Write an HTML page for each named chapter (default: all), from stored draws; nothing is drawn.",
        }[command],
        epilog=_EPILOG if command == "judge" else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if command == "explain":
        parser.add_argument("name", metavar="CLAIM")
    else:
        parser.add_argument("names", nargs="*", metavar=_NAMES.get(command, "CHAPTER or CLAIM"))
    if command == "judge":
        parser.add_argument("--list", action="store_true", help="list the claims and exit")
        parser.add_argument("--tier", choices=("quick", "standard", "full"), default="quick", help="default: quick")
        parser.add_argument("--json", type=Path, help="where to write the verdicts (default: verdicts.json in --out)")
    if command == "report":
        parser.add_argument(
            "--tier", choices=("quick", "standard", "full"), help="default: standard where it is complete, else quick"
        )
        parser.add_argument("--figures", type=Path, default=Path(FIGURES), help=f"drawn figures (default: {FIGURES})")
    if command == "calibrate":
        parser.add_argument("--seeds", type=_count, default=20, help="number of seeds, from --seed on (default: 20)")
    parser.add_argument("--seed", type=_seed, default=0, help="default: 0")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=_count, help="processes (default: the number of cores)")
    if command == "figures":
        parser.add_argument("--out", type=Path, default=Path(FIGURES), help=f"directory (default: {FIGURES})")
        return parser
    if command != "report":
        address = "draw on the Dask cluster of this scheduler, tcp://host:8786"
        where.add_argument("--dask", metavar="ADDRESS", help=address)
    folder = f"directory of draws, plots and report (default: {OUT})"
    parser.add_argument("--out", type=Path, default=Path(OUT), help=folder)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^63 - 1, got {text!r}")
    return int(text)


@contextlib.contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[Cluster | None]:
    """The cluster that --dask names; None without one, and then nothing of Dask is imported."""
    if options.dask is None:
        yield None
        return
    from verify.cluster import connected

    with connected(options.dask) as cluster:
        yield cluster


def _judge(options: argparse.Namespace, chapters: Sequence[Chapter] | None) -> int:
    from verify.report import listing, print_table, progress_for, write_json
    from verify.run import Registry, Run, default_workers, open_store

    registry = Registry.of(chapters)
    if options.list:
        print("\n".join(listing(registry, options.names)))
        return 0
    registry.select(options.names)  # a wrong name is told before anything is created
    code = 0
    with _cluster(options) as cluster, open_store(options.out) as store:
        run = Run(
            registry,
            store,
            names=options.names,
            tier=options.tier,
            seed=options.seed,
            workers=options.workers or default_workers(),
            progress=progress_for(sys.stderr),
            cluster=cluster,
        )
        if run.stale:
            print(f"{run.stale} draws of an earlier version of a sampler were dropped", file=sys.stderr)
        from verify.plots import write_plots

        for report in run.looks():
            target = options.json or options.out / "verdicts.json"
            _write(lambda: write_json(report, target), target)  # noqa: B023 (called at once)
            write_plots(report.results, options.out / "plots")
            print_table(report, sys.stdout)
            print(f"verdicts in {target}, plots in {options.out / 'plots'}")
            code = report.exit_code
    return code


def _write(action: Any, target: Path) -> None:
    from verify.run import UsageError

    try:
        action()
    except OSError as error:
        raise UsageError(f"--json {target} cannot be written: {error.strerror}; choose another file") from error


def _explain(options: argparse.Namespace, chapters: Sequence[Chapter] | None) -> int:
    from verify.judge import Levels
    from verify.report import explanation, progress_for
    from verify.run import Registry, Run, UsageError, default_workers, open_store

    registry = Registry.of(chapters)
    entries = registry.select([options.name])
    if options.name in registry.chapters:
        claims = ", ".join(entry.claim.id for entry in entries) or "none"
        raise UsageError(f"{options.name} is a chapter; explain one of its claims: {claims}")
    claim = entries[0].claim
    with _cluster(options) as cluster, open_store(options.out) as store:
        settings: dict[str, Any] = {
            "names": [claim.id],
            "seed": options.seed,
            "workers": options.workers or default_workers(),
            "progress": progress_for(sys.stderr),
            "cluster": cluster,
        }
        tier = claim.tier
        if tier == "quick" and Run(registry, store, tier="standard", **settings).complete():
            tier = "standard"
        report = next(Run(registry, store, tier=tier, **settings).looks())
    print("\n".join(explanation(report.results[0], tier, Levels.of_run(registry.tests, tier))))
    return report.exit_code


def _calibrate(options: argparse.Namespace, chapters: Sequence[Chapter] | None) -> int:
    from verify.calibrate import calibrate, claims_to_calibrate, lines
    from verify.report import progress_for
    from verify.run import Registry, default_workers, open_store

    registry = Registry.of(chapters)
    claims_to_calibrate(registry, options.names)
    seeds = range(options.seed, options.seed + options.seeds)
    workers = options.workers or default_workers()
    result = None
    with _cluster(options) as cluster, open_store(options.out) as store:
        for result in calibrate(registry, store, seeds, options.names, workers, progress_for(sys.stderr), cluster):
            print(f"seed {seeds[result.runs - 1]}: {result.alarms} false alarms, {result.misses} missed rivals so far")
    if result is None:
        print("stopped before the first seed was complete; run again to continue", file=sys.stderr)
        return 1
    print("\n".join(lines(result)))
    return 0 if result.runs == options.seeds and not result.alarmed_runs and not result.missed_runs else 1


def _figures(options: argparse.Namespace, chapters: Sequence[Chapter] | None) -> int:
    from verify.figures import chapters_with_figures, draw_figures, figure_names
    from verify.run import UsageError, default_workers

    known = figure_names()
    unknown = [name for name in options.names if name not in (*known, *chapters_with_figures())]
    if unknown:
        raise UsageError(f"no figure for {', '.join(unknown)}; the figures are: {', '.join(known)}")
    asked = set(options.names)  # a chapter's name asks for all its figures, the main one included
    wanted = [name for name in known if not asked or name in asked or name.partition("-")[0] in asked]
    print(*draw_figures(wanted, options.out, options.seed, options.workers or default_workers()), sep="\n")
    return 0


def _report(options: argparse.Namespace, chapters: Sequence[Chapter] | None) -> int:
    from verify.html_report import ReportSettings, write_report
    from verify.run import default_workers

    settings = ReportSettings(tuple(options.names), options.out, options.figures, options.seed, options.tier)
    paths = write_report(settings, options.out / PAGES, options.workers or default_workers(), chapters)
    print(f"{len(paths)} pages; open {paths[0]}")
    return 0


_COMMANDS = {
    "judge": _judge,
    "explain": _explain,
    "calibrate": _calibrate,
    "figures": _figures,
    "report": _report,
}

if __name__ == "__main__":
    sys.exit(main())
