"""fib doctor: every line is ok or says what to do; a problem is exit code 1."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fib_core.adapters.directory_store import DirectoryStore
from flows.cli import doctor, doctor_checks, store_probe
from tests.fakes.memory_store import MemoryStore


@pytest.fixture
def app(monkeypatch, tmp_path):
    monkeypatch.setenv("FIB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIB_STORE", raising=False)
    monkeypatch.setattr(doctor_checks, "MODULES", {"json": ("a quick import", "install Python")})
    made = typer.Typer()
    doctor.register(made)
    return made


def test_a_healthy_machine_is_exit_0_and_pure_json(app):
    result = CliRunner().invoke(app, ["--json"], catch_exceptions=False)
    found = json.loads(result.stdout)
    assert {line["name"] for line in found["checks"]} >= {"python", "g++", "make", "json", "home", "store", "device"}
    assert (result.exit_code == 0) is found["ok"] is all(line["ok"] for line in found["checks"])
    assert found["ok"], found


def test_one_problem_is_exit_1_and_says_what_to_do(app, monkeypatch):
    monkeypatch.setattr(doctor_checks, "MODULES", {"no_such_module_here": ("nothing", "install it")})
    result = CliRunner().invoke(app, [], catch_exceptions=False)
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("problem")]
    assert "no_such_module_here" in line
    assert line.endswith("-> install it")


@pytest.mark.parametrize(("version", "ok"), [((3, 10), False), ((3, 11), True), ((3, 12), True), ((3, 13), False)])
def test_only_supported_pythons_are_ok(version, ok):
    finding = doctor_checks.python_version(version)
    assert finding.ok is ok
    assert bool(finding.advice) is not ok


def test_a_missing_compiler_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [finding.ok for finding in doctor_checks.programs()] == [False, False]


def test_a_module_that_kills_its_process_is_a_problem_and_not_the_doctors_end(monkeypatch, tmp_path):
    (tmp_path / "deadly.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (finding,) = doctor_checks.modules({"deadly": ("a test", "remove it")})
    assert not finding.ok
    assert "-11" in finding.found


def test_a_home_that_cannot_be_made_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    assert not doctor_checks.home(tmp_path / "file" / "home").ok
    assert doctor_checks.home(tmp_path / "new").ok


def test_a_store_address_that_makes_no_sense_is_a_problem():
    assert not doctor_checks.store("gopher://x").ok


def test_honest_stores_break_no_promise(tmp_path):
    for store in (MemoryStore(), DirectoryStore(tmp_path)):
        assert store_probe.broken_promises(store) == []
        assert store_probe.broken_promises(store) == []


class _Careless(MemoryStore):
    def put_once(self, key, body):
        self.objects[key] = bytes(body)
        return True


class _Trusting(MemoryStore):
    def swap(self, key, body, expected_etag):
        current = self.objects.get(key)
        return super().swap(key, body, self.get(key).etag if current else None)


class _Forgetful(MemoryStore):
    def swap(self, key, body, expected_etag):
        return super().swap(key, b"0", expected_etag)


@pytest.mark.parametrize(("kind", "said"), [(_Careless, "created"), (_Trusting, "stale"), (_Forgetful, "seen")])
def test_a_store_that_breaks_a_promise_is_found_out(kind, said):
    store = kind()
    broken = store_probe.broken_promises(store) + store_probe.broken_promises(store)
    assert any(said in text for text in broken)


def test_the_compiler_named_by_the_environment_is_the_one_examined(monkeypatch, tmp_path):
    own = Path(tmp_path / "my-g++")
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("CXX", str(own))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert doctor_checks.programs()[0].name == "my-g++"


def test_a_device_that_this_host_does_not_have_is_a_problem(app, monkeypatch):
    monkeypatch.setenv("FIB_DEVICE", "cuda:63")
    result = CliRunner().invoke(app, ["--json"], catch_exceptions=False)
    (line,) = [line for line in json.loads(result.stdout)["checks"] if line["name"] == "device"]
    assert result.exit_code == 1
    assert not line["ok"]
    assert "FIB_DEVICE" in line["advice"]


def test_a_knob_with_a_value_it_cannot_have_is_named_in_one_sentence(tmp_path):
    place = {"FIB_DEVICE": "gpu", "FIB_HOME": str(tmp_path)}
    command = [sys.executable, "-c", "from flows.cli import main; main()", "doctor"]
    done = subprocess.run(command, env=os.environ | place, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2
    assert "FIB_DEVICE='gpu'" in done.stderr
    assert "Traceback" not in done.stderr
