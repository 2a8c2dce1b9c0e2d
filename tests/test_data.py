"""A user's own matrix: what is read, what is found in it, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import struct

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from verify import data, tables
from verify.data import Bulk, analyse, fit_bulk, invert, main, spectrum_of

V, D, N, T, L = 400, 200, 800, 16, 8
WEIGHTS = np.full(T, 1 / T)
CORRELATION = np.eye(T)
CORRELATION[:L, :L] = 1.0


def pooled(seed=0, signal=0.6):
    """Mean-pooled sequences of a prefix model, one a row, of unit noise."""
    generator = np.random.default_rng(seed)
    embeddings = generator.standard_normal((V, D))
    embeddings[:, 0] += np.sqrt(signal) * np.repeat([1, -1], V // 2)
    label = generator.integers(0, 2, (N, 1))
    signs = np.where(np.arange(T) < L, label, generator.integers(0, 2, (N, T)))
    return embeddings[generator.integers(0, V // 2, (N, T)) + V // 2 * (1 - signs)].mean(axis=1)


@pytest.fixture(scope="module")
def matrix():
    return pooled()


@pytest.fixture
def saved(tmp_path, matrix):
    path = tmp_path / "pooled.npy"
    np.save(path, matrix)
    return path


def report_on(matrix, path="pooled.npy", **more):
    return analyse(path, spectrum_of(path, matrix, None), **more)


# ----------------------------------------------------------------------------------------------------------- analysis


def test_bulk_and_spikes_of_a_token_model(matrix):
    """κ, the spikes' strengths and overlaps and ‖μ‖² are the ones that were drawn, within their errors."""
    report = report_on(matrix, vocabulary=V, weights=WEIGHTS, correlation=CORRELATION)
    assert report.fits, report.verdict
    assert report.bulk.kappa == pytest.approx(1 / T, rel=0.03)
    first, second = report.outliers
    kinds = {one.kind: one for one in (first, second)}
    assert set(kinds) == {"vocabulary-mean", "other"}
    mean, signal = kinds["vocabulary-mean"], kinds["other"]
    assert abs(mean.strength - T * D / V) < 4 * (mean.strength_error + T * D / V * np.sqrt(2 / D))
    assert abs(signal.signal - 0.6) < 4 * signal.signal_error
    assert mean.along_mean > 0.9 > 0.1 > signal.along_mean


def test_overlap_and_its_error():
    """Realised overlap of the leading eigenvector with a spike, against the one inferred from the eigenvalue alone."""
    for seed in range(3):
        generator = np.random.default_rng(seed)
        noise = generator.standard_normal((D, V)) @ generator.standard_normal((V, N)) / np.sqrt(V)
        noise[0] += np.sqrt(6.0) * generator.standard_normal(N)
        spectrum = spectrum_of("x", noise.T, None)
        found = analyse("x", spectrum, vocabulary=V).outliers[0]
        vector = np.linalg.eigh(noise @ noise.T)[1][:, -1]
        assert abs(found.strength - 6.0) < 4 * found.strength_error
        assert abs(found.overlap - vector[0] ** 2) < 4 * found.overlap_error
        assert 0 < found.strength_error < 2


@pytest.mark.parametrize(("delta", "gamma"), [(0.5, 0.25), (0.0, 0.3), (2.0, 0.5)])
@pytest.mark.parametrize("strength", [3.0, 6.0, 40.0])
def test_inverse_map(delta, gamma, strength):
    bulk = Bulk(delta, gamma, 0.7, 0.0, 0.0, ())
    place = 0.7 * float(data._compiled("location")(strength - delta, delta, gamma))
    if strength > data._threshold(bulk, "above"):
        assert invert(place, bulk)[0] == pytest.approx(strength, rel=1e-9)
    assert invert(0.0, bulk) == (data._threshold(bulk, "above"), 0.0)


def test_spike_below_the_bulk():
    generator = np.random.default_rng(5)
    noise = generator.standard_normal((320, 80)) @ generator.standard_normal((80, 320)) / np.sqrt(80)
    noise[0] += np.sqrt(0.5) * generator.standard_normal(320)
    report = report_on(noise.T, vocabulary=80)
    (weak,) = [one for one in report.outliers if one.side == "below"]
    assert abs(weak.strength - 0.5) < 4 * weak.strength_error
    assert 0 < weak.overlap < 1


def test_no_spike_no_outlier():
    generator = np.random.default_rng(8)
    counts = 0
    for _ in range(3):
        report = report_on(generator.standard_normal((450, 150)))
        assert report.fits and report.bulk.delta < 0.02
        counts += len(report.outliers)
    assert counts == 0


def test_fitted_ratios(matrix):
    spectrum = spectrum_of("x", matrix, None)
    assert fit_bulk(spectrum.centred[:-1], None, D / N).delta == pytest.approx(D / V, rel=0.1)
    both = fit_bulk(spectrum.centred[:-1], None, None)
    assert both.delta + both.gamma == pytest.approx(D / V + D / N, rel=0.1)
    assert both.fitted == ("delta", "gamma")


def test_misfit_says_how():
    generator = np.random.default_rng(2)
    wide = generator.standard_normal((600, 150)) * np.geomspace(0.2, 5, 150)
    report = report_on(wide, vocabulary=10**6)
    assert not report.fits and "small and large eigenvalues are both more frequent" in report.verdict
    rotation = np.linalg.qr(generator.standard_normal((600, 150)))[0]
    narrow = report_on(rotation + 0.01 * generator.standard_normal((600, 150)), vocabulary=300)
    assert not narrow.fits and "narrower" in narrow.verdict
    low = generator.standard_normal((600, 40)) @ generator.standard_normal((40, 150))
    assert "more eigenvalues are zero" in report_on(low, vocabulary=300).verdict


def test_more_dimensions_than_samples(matrix):
    """The spectrum, the means and the angles are those of the dense matrices."""
    few = matrix[:120]
    spectrum = spectrum_of("x", few, None)
    moment, centred = few.T @ few / 120, np.cov(few.T)
    np.testing.assert_allclose(spectrum.values, np.maximum(np.linalg.eigvalsh(moment), 0), atol=1e-12)
    np.testing.assert_allclose(spectrum.centred, np.maximum(np.linalg.eigvalsh(centred), 0), atol=1e-12)
    mean = few.mean(axis=0)
    vectors = np.linalg.eigh(moment)[1][:, ::-1]
    np.testing.assert_allclose(spectrum.along_mean[:5], (vectors[:, :5].T @ mean) ** 2 / (mean @ mean), rtol=1e-6)


def test_eigenvalues_alone(matrix):
    values = spectrum_of("x", matrix, None).values
    spectrum = spectrum_of("x", values, N)
    plain = analyse("x", spectrum, vocabulary=V)
    assert {one.kind for one in plain.outliers} == {"unknown"}
    told = analyse("x", spectrum, vocabulary=V, weights=WEIGHTS, correlation=CORRELATION)
    assert sum(one.kind == "vocabulary-mean" for one in told.outliers) >= 1


# ------------------------------------------------------------------------------------------------------------- command


def test_command(saved, tmp_path, capsys):
    weights, correlation = tmp_path / "w.npy", tmp_path / "r.csv"
    np.save(weights, WEIGHTS)
    np.savetxt(correlation, CORRELATION, delimiter=",")
    target, picture = tmp_path / "out.json", tmp_path / "out.svg"
    arguments = [str(saved), "--vocabulary", str(V), "--weights", str(weights), "--correlation", str(correlation)]
    assert main([*arguments, "--json", str(target), "--plot", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "the bulk fits" in text and "vocabulary-mean" in text
    found = json.loads(target.read_text())
    assert found["fits"] and len(found["outliers"]) == 2 and found["dimension"] == D
    assert picture.read_text().startswith("<?xml")
    assert main(["--help"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npy"], "no such file"),
        (["table.xlsx"], "suffix must be one of"),
        (["pooled.npy", "--samples", "7"], "contradicts the file"),
        (["pooled.npy", "--key", "a"], "holds one array"),
        (["pooled.npy", "--correlation", "pooled.npy"], "needs --weights"),
        (["pooled.npy", "--plot", "out.xyz"], "xyz"),
        (["pooled.npy", "--json", "nowhere/out.json"], "cannot be written"),
        (["pooled.npy", "--vocabulary", "0"], "whole number >= 2"),
    ],
)
def test_wrong_usage(saved, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(saved.parent)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------------------- files


def safetensors(header, payload=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


SMALL = np.arange(12.0).reshape(4, 3)
ENTRY = {"dtype": "F64", "shape": [4, 3], "data_offsets": [0, 96]}


@pytest.mark.parametrize("mapped", [False, True])
def test_formats(tmp_path, monkeypatch, mapped):
    if mapped:
        monkeypatch.setattr(tables, "MAPPED_FROM", 10)
    np.save(tmp_path / "a.npy", SMALL)
    np.savez(tmp_path / "a.npz", x=SMALL)
    (tmp_path / "a.csv").write_text("first;second;third\n" + "\n".join(";".join(map(str, row)) for row in SMALL))
    (tmp_path / "a.safetensors").write_bytes(safetensors({"__metadata__": {}, "x": ENTRY}, SMALL.tobytes()))
    for suffix in ("npy", "npz", "csv", "safetensors"):
        found = tables.read_array(tmp_path / f"a.{suffix}")
        np.testing.assert_array_equal(found, SMALL)
        assert isinstance(found, np.memmap) == (mapped and suffix in ("npy", "safetensors"))


def test_brain_floats_and_keys(tmp_path):
    raw = (SMALL.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    header = {
        "b": {"dtype": "BF16", "shape": [4, 3], "data_offsets": [0, 24]},
        "c": {"dtype": "I8", "shape": [2], "data_offsets": [24, 26]},
        "d": {"dtype": "U8", "shape": [1, 2], "data_offsets": [24, 26]},
    }
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors(header, raw.tobytes() + b"\1\2"))
    np.testing.assert_array_equal(tables.read_array(path, "b"), SMALL)
    np.testing.assert_array_equal(tables.read_array(path, "c"), [1, 2])
    with pytest.raises(tables.TableError, match="choose one by --key: b, d"):
        tables.read_array(path)
    with pytest.raises(tables.TableError, match="no array 'z'"):
        tables.read_array(path, "z")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'", "not a readable"),
        ("a.npy", b"", "not a readable"),
        ("a.npz", b"PK\x03\x04 no zip", "not a readable"),
        ("a.csv", b"", "empty"),
        ("a.csv", b"1,2\n3,x\n", "line 2 holds something"),
        ("a.csv", b"1,2\n3\n", "line 2 has 1 columns"),
        ("a.csv", b"a,b\n", "no line of numbers"),
        ("a.csv", b"\xff\xfe\x00", "not a text file"),
        ("a.csv", b"__import__('os'),2\n1,os.getcwd()\n", "line 2 holds something"),
        ("a.safetensors", b"abc", "damaged"),
        ("a.safetensors", struct.pack("<Q", 10**12) + b"{}", "damaged"),
        ("a.safetensors", struct.pack("<Q", 4) + b"{no}", "no JSON"),
        ("a.safetensors", safetensors([1]), "no table"),
        ("a.safetensors", safetensors({}), "holds no array"),
        ("a.safetensors", safetensors({"x": {"shape": [2, 2]}}), "incomplete"),
        ("a.safetensors", safetensors({"x": {**ENTRY, "dtype": "Q8"}}, SMALL.tobytes()), "type Q8"),
        ("a.safetensors", safetensors({"x": ENTRY}, SMALL.tobytes()[:-1]), "damaged"),
        ("a.safetensors", safetensors({"x": {**ENTRY, "data_offsets": [-96, 0]}}, SMALL.tobytes()), "damaged"),
        ("a.safetensors", safetensors({"x": {**ENTRY, "data_offsets": ["0", "96"]}}, SMALL.tobytes()), "incomplete"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(tables.TableError, match=message):
        tables.read_array(path)


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(tables.TableError, match="not a readable"):
            tables.read_array(tmp_path / name)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((30, 30)), "constant"),
        (np.zeros((30, 30)), "constant"),
        (np.arange(30.0)[None, :], "one row"),
        (np.ones(30), "constant"),
        (np.arange(5.0), "at least 16 eigenvalues"),
        (np.arange(-9.0, 30.0), "must be >= 0"),
        (np.arange(30.0).reshape(3, 10), "at least 16 rows"),
        (np.where(np.arange(400).reshape(20, 20) == 47, np.nan, 1.0), r"nan at \[2, 7\]"),
        (np.where(np.arange(40) == 7, np.inf, 1.0), r"inf at \[7\]"),
    ],
)
def test_useless_arrays(array, message):
    with pytest.raises(tables.TableError, match=message):
        spectrum_of("x", array, None)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.zeros((2, 2, 2)), np.zeros((0, 3))])
def test_useless_types(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(tables.TableError, match=r"real numbers|one or two axes"):
        tables.read_array(tmp_path / "a.npy")


def test_parquet_without_its_reader(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(tables.TableError, match="needs the package pyarrow"):
        tables.read_array(tmp_path / "a.parquet")


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": [3, 4], "v": [[1.0, 2.0], [3.0, 4.0]]}), path)
    np.testing.assert_array_equal(tables.read_array(path, "v"), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(tables.read_array(path, "x"), [1, 2])
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": [3, 4]}), path)
    np.testing.assert_array_equal(tables.read_array(path), [[1, 3], [2, 4]])
    parquet.write_table(pyarrow.table({"x": [1.0, None]}), path)
    with pytest.raises(tables.TableError, match="missing entries"):
        tables.read_array(path)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(tables.TableError, match="not a readable parquet"):
        tables.read_array(path)
