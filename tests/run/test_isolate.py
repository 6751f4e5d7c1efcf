"""Workers that behave and workers that do not: what the parent sees, and what is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from opcheck.errors import WorkerError
from opcheck.run.handle import Worker
from opcheck.run.isolate import Death, Died, Done, Message, Pool
from opcheck.run.launch import Server

ROOT = Path(__file__).parents[2]

#: A program that prints the process ids of all that it has started, and waits to be killed.
PARENT = """
import json, os
from opcheck.run.isolate import Pool
with Pool(entry="tests.run.entries:serve", environment={}, size=1, timeout=60, payload={}) as pool:
    for event in pool.run([{"do": "spawn and hang"}]):
        worker = event.body["pids"][0]
        server = int(open(f"/proc/{worker}/stat").read().rpartition(")")[2].split()[1])
        print(json.dumps([server, *event.body["pids"]]), flush=True)
"""


def make_pool(entry="serve", *, size=1, timeout=10.0, payload=None, environment=None, **options):
    """A pool whose workers can import this folder's entries."""
    return Pool(
        entry=f"tests.run.entries:{entry}",
        environment={"PYTHONPATH": str(ROOT), **(environment or {})},
        size=size,
        timeout=timeout,
        payload=payload or {},
        **options,
    )


@pytest.fixture(scope="module")
def pool():
    """One pool for all tests that kill only workers: itself a test that it survives them."""
    with make_pool(payload={"from": "parent"}) as shared:
        yield shared


@pytest.fixture(scope="module")
def hasty():
    with make_pool(timeout=0.5) as shared:
        yield shared


def is_gone(pid: int, patience: float = 3.0) -> bool:
    """Whether the process ends, or is a zombie, within `patience` seconds."""
    latest = time.monotonic() + patience
    while time.monotonic() < latest:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def pids_of(bodies) -> list[int]:
    return [pid for body in bodies for pid in body.get("pids", [])]


class TestWork:
    def test_every_item_is_done_once_and_by_both_workers(self):
        with make_pool(size=2) as two:
            events = list(two.run([{"do": "count", "steps": 2, "pause": 0.01} for _ in range(12)]))
            pids = {e.body["pid"] for e in two.run([{"do": "echo"}] * 40) if isinstance(e, Message)}
        assert sorted(e.item_index for e in events if isinstance(e, Done)) == list(range(12))
        for index in range(12):
            mine = [e for e in events if e.item_index == index]
            assert [e.body["step"] for e in mine[:-1]] == [0, 1]
            assert mine[-1] == Done(item_index=index)
        assert len(pids) == 2

    def test_no_items_give_no_events(self, pool):
        assert list(pool.run([])) == []

    def test_run_once_gives_the_bodies(self, pool):
        (body,) = pool.run_once({"do": "echo", "value": ["é", None, 0.1]})
        assert body["echo"] == ["é", None, 0.1]
        assert body["payload"] == {"from": "parent"}

    def test_run_once_takes_another_entry_and_leaves_the_pool_as_it_was(self, pool):
        (before,) = pool.run_once({"do": "echo"})
        assert pool.run_once({"x": 1}, entry="tests.run.entries:by_hand") == [{"echo": {"x": 1}}]
        (after,) = pool.run_once({"do": "echo"})
        assert after["pid"] == before["pid"]

    def test_environment_and_preload_are_there_before_the_worker(self):
        with make_pool(preload=["colorsys"], environment={"TRITON_INTERPRET": "1"}) as own:
            (body,) = own.run_once({"do": "variable", "name": "TRITON_INTERPRET", "modules": ["colorsys", "torch"]})
        assert body == {"value": "1", "modules": ["colorsys"]}
        assert "TRITON_INTERPRET" not in os.environ

    def test_worker_shares_nothing_with_its_parent(self, pool):
        (body,) = pool.run_once({"do": "surroundings"})
        assert body == {"leads its group": True, "input": "/dev/null", "core": 0, "sockets": 1}

    def test_keyboard_interrupt_of_the_terminal_does_not_reach_the_worker(self, pool):
        assert pool.run_once({"do": "signal", "number": int(signal.SIGINT)}) == []

    def test_large_message_arrives_whole(self, pool):
        (body,) = pool.run_once({"do": "large", "size": 5_000_000})
        assert body == {"text": "x" * 5_000_000}

    def test_large_item_arrives_whole(self, pool):
        (body,) = pool.run_once({"do": "echo", "value": "z" * 5_000_000})
        assert body["echo"] == "z" * 5_000_000

    def test_output_stays_off_the_parents_streams(self, pool, capfd):
        assert pool.run_once({"do": "print"}) == []
        assert capfd.readouterr() == ("", "")

    def test_nan_is_refused_where_it_is_sent(self, pool):
        with pytest.raises(ValueError, match="JSON compliant"):
            pool.run_once({"do": "echo", "value": float("nan")})
        assert len(pool.run_once({"do": "echo"})) == 1

    def test_leaving_early_kills_what_is_at_work(self):
        with make_pool() as own:
            for event in own.run([{"do": "spawn and hang"}, {"do": "echo"}]):
                pids = event.body["pids"]
                break
            assert all(is_gone(pid) for pid in pids[:2])
            assert len(own.run_once({"do": "echo"})) == 1

    def test_one_run_at_a_time(self, pool):
        running = pool.run([{"do": "echo"}])
        next(running)
        with pytest.raises(RuntimeError, match="one run"):
            next(pool.run([]))
        running.close()
        with pytest.raises(RuntimeError, match="outside of a run"):
            pool.resubmit({"do": "echo"})


class TestDeath:
    @pytest.mark.parametrize(
        ("item", "reason", "log"),
        [
            ({"do": "segfault"}, "killed by SIGSEGV", "about to read address 0"),
            ({"do": "signal", "number": int(signal.SIGSEGV)}, "killed by SIGSEGV", "in _signal"),
            ({"do": "signal", "number": int(signal.SIGTERM)}, "killed by SIGTERM", ""),
            ({"do": "signal", "number": int(signal.SIGKILL)}, "killed by SIGKILL", ""),
            ({"do": "exit hard"}, "exited with status 3 without an answer", ""),
            ({"do": "exit", "code": None}, "exited with status 0 without an answer", ""),
            ({"do": "exit", "code": 7}, "exited with status 7 without an answer", ""),
            ({"do": "exit", "code": "no licence"}, "exited with status 1 without an answer", "no licence"),
            ({"do": "raise"}, "exited with status 1 without an answer", "LookupError: a distinctive message"),
            ({"do": "write raw", "bytes": "ff" * 64}, "sent what is not a message", "in _write_raw"),
            ({"do": "write raw", "bytes": "00000002" + b"[]".hex()}, "a JSON list instead of an object", ""),
            ({"do": "write raw", "bytes": "00000007" + b'{"a":Na'.hex()}, "sent what is not a message", ""),
            ({"do": "say and die", "text": "fffe80"}, "exited with status 4 without an answer", "\ufffd"),
        ],
        ids=lambda value: value["do"] if isinstance(value, dict) else "",
    )
    def test_reason_and_log_say_what_happened(self, pool, item, reason, log):
        death = pool.run_once(item)
        assert isinstance(death, Death)
        assert reason in death.reason
        assert log in death.log
        assert not death.timed_out
        assert len(pool.run_once({"do": "echo"})) == 1

    def test_messages_before_a_crash_arrive_before_it(self, pool):
        message, died = pool.run([{"do": "segfault"}])
        assert message == Message(item_index=0, body={"announced": "the case that crashes"})
        assert isinstance(died, Died)

    def test_crash_log_shows_where(self, pool):
        log = pool.run_once({"do": "segfault"}).log
        assert "in _segfault" in log
        assert "Extension modules" not in log

    def test_log_is_of_this_item_only(self, pool):
        assert pool.run_once({"do": "print"}) == []
        assert pool.run_once({"do": "say and die", "text": b"the end".hex()}).log == "the end"

    def test_log_is_short(self, pool):
        log = pool.run_once({"do": "say and die", "text": (b"a" * 50_000 + b"the end").hex()}).log
        assert log == "a" * 1993 + "the end"

    def test_the_other_items_are_done(self):
        items = [{"do": "segfault" if index % 3 == 0 else "echo"} for index in range(9)]
        with make_pool(size=2) as two:
            events = list(two.run(items))
        assert sorted(e.item_index for e in events if isinstance(e, Died)) == [0, 3, 6]
        assert sorted(e.item_index for e in events if isinstance(e, Done)) == [1, 2, 4, 5, 7, 8]

    def test_resubmitted_rest_comes_next(self, pool):
        ended = []
        for event in pool.run([{"do": "exit hard"}, {"do": "echo"}]):
            if isinstance(event, Died):
                assert pool.resubmit({"do": "echo", "value": "rest"}) == 2
            if isinstance(event, Died | Done):
                ended.append(event.item_index)
        assert ended == [0, 2, 1]


class TestTime:
    @pytest.mark.parametrize(("action", "log"), [("hang", "in _hang"), ("hang stubbornly", "")])
    def test_silence_is_death(self, hasty, action, log):
        start = time.monotonic()
        death = hasty.run_once({"do": action})
        assert death.reason == "no answer within 0.5 s, killed"
        assert death.timed_out
        assert log in death.log
        assert 0.5 <= time.monotonic() - start < 3

    def test_each_message_restarts_the_clock(self, hasty):
        assert len(hasty.run_once({"do": "count", "steps": 6, "pause": 0.15})) == 6

    def test_half_a_message_is_silence(self, hasty):
        assert hasty.run_once({"do": "write raw", "bytes": "00001000" + "20" * 9}).timed_out

    def test_a_slow_caller_is_not_held_against_the_worker(self, hasty):
        events = []
        for event in hasty.run([{"do": "count", "steps": 2, "pause": 0.05}]):
            events.append(event)
            time.sleep(0.7)
        assert events[-1] == Done(item_index=0)

    def test_what_waits_to_be_read_is_not_silence(self):
        server = Server(preload=[], environment={"PYTHONPATH": str(ROOT)})
        try:
            worker = Worker(server, 1, entry="tests.run.entries:serve", payload={}, timeout=0.2)
            wait([worker], 5)
            time.sleep(0.25)
            assert not worker.overdue()
            assert worker.listen() == []
            assert worker.idle
            worker.release()
        finally:
            server.close()

    def test_idleness_is_not_silence(self, hasty):
        (before,) = hasty.run_once({"do": "echo"})
        time.sleep(0.7)
        (after,) = hasty.run_once({"do": "echo"})
        assert after["pid"] == before["pid"]

    def test_closed_channel_of_a_living_worker(self, pool):
        assert pool.run_once({"do": "close channel"}).reason == "closed its channel without an answer, killed"

    def test_what_it_started_dies_with_it(self):
        with make_pool(timeout=0.5) as own:
            message, died = own.run([{"do": "spawn and hang"}])
            worker, near, far = message.body["pids"]
            assert died.death.timed_out
            assert is_gone(worker)
            assert is_gone(near)
            assert not is_gone(far, patience=0.05)
        assert is_gone(far)


class TestStart:
    def test_death_without_an_item_is_retried_once(self, tmp_path):
        with make_pool("die_at_first_start", payload={"marker": str(tmp_path / "marker")}) as own:
            assert len(own.run_once({"do": "echo"})) == 1

    @pytest.mark.parametrize(
        ("entry", "timeout", "message"),
        [
            ("die_at_start", 10, "no licence found"),
            ("hang_at_start", 0.3, "no answer within 0.3 s"),
            ("talk_out_of_turn", 10, "out of turn"),
            ("missing", 10, "AttributeError"),
        ],
    )
    def test_second_death_without_an_item_is_an_error(self, entry, timeout, message):
        with make_pool(entry, timeout=timeout) as own, pytest.raises(WorkerError, match=message) as caught:
            own.run_once({"do": "echo"})
        assert caught.value.exit_status == 3

    def test_a_preload_that_fails_is_reported(self):
        with make_pool(preload=["no_such_module"]) as own:
            assert own.preload_failures == {"no_such_module": "ModuleNotFoundError: No module named 'no_such_module'"}
            assert len(own.run_once({"do": "echo"})) == 1

    def test_a_required_module_that_fails_is_an_error(self):
        with pytest.raises(WorkerError, match=r"cannot import no_such_module \(ModuleNotFoundError"):
            make_pool(require=["no_such_module"])

    def test_a_server_that_cannot_start_is_an_error_with_its_words(self, tmp_path):
        (tmp_path / "crash_at_import.py").write_text("import os\nos.write(2, b'last words')\nos._exit(5)\n")
        with pytest.raises(WorkerError, match=r"ended: exited with status 5[^\n]*\nlast words"):
            make_pool(preload=["crash_at_import"], environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"})

    def test_the_parent_side_imports_no_torch(self):
        probe = "import sys, opcheck.run.isolate; print([m for m in ('torch', 'triton', 'numpy') if m in sys.modules])"
        run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
        assert run.stdout == "[]\n"


class TestEnd:
    def test_closing_twice_leaves_nothing(self):
        own = make_pool()
        (body,) = own.run_once({"do": "echo"})
        own.close()
        own.close()
        assert is_gone(body["pid"])
        with pytest.raises(RuntimeError, match="closed"):
            own.run_once({"do": "echo"})

    def test_dismissed_workers_are_gone_and_new_ones_come(self, tmp_path):
        marker = tmp_path / "marker"
        with make_pool("say_farewell", size=2, payload={"marker": str(marker)}) as own:
            before = {event.body["pid"] for event in own.run([{"do": "echo"}] * 40) if isinstance(event, Message)}
            own.dismiss()
            assert marker.read_text() == "stopped"
            assert all(is_gone(pid, patience=0.5) for pid in before)
            own.dismiss()
            after = {event.body["pid"] for event in own.run([{"do": "echo"}]) if isinstance(event, Message)}
        assert before
        assert len(after) == 1
        assert not before & after

    def test_no_worker_is_dismissed_from_its_work(self, pool):
        running = pool.run([{"do": "echo"}])
        next(running)
        with pytest.raises(RuntimeError, match="inside of a run"):
            pool.dismiss()
        running.close()

    def test_idle_workers_end_by_a_word(self, tmp_path):
        marker = tmp_path / "marker"
        with make_pool("say_farewell", payload={"marker": str(marker)}) as own:
            own.run_once({"do": "echo"})
        assert marker.read_text() == "stopped"

    def test_keyboard_interrupt_ends_all_and_comes_through(self):
        own = make_pool(size=2)
        pids = []

        def interrupt_when_both_hang():
            for event in own.run([{"do": "spawn and hang"}, {"do": "spawn and hang"}]):
                pids.extend(event.body["pids"])
                if len(pids) == 6:
                    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()

        with pytest.raises(KeyboardInterrupt):
            interrupt_when_both_hang()
        assert len(pids) == 6
        assert all(is_gone(pid) for pid in pids)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_no_orphans_of_a_killed_parent(self, number):
        parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        with parent:
            pids = json.loads(parent.stdout.readline())
            assert all(not is_gone(pid, patience=0.02) for pid in pids)
            parent.send_signal(number)
        assert all(is_gone(pid) for pid in pids)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_a_killed_server_is_an_error_and_its_workers_die(self, number):
        with make_pool() as own:
            running = own.run([{"do": "spawn and hang"}])
            worker, near, far = next(running).body["pids"]
            server = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(server, number)
            with pytest.raises(WorkerError, match="fork server ended"):
                list(running)
            assert is_gone(worker)
            if number == signal.SIGTERM:
                assert is_gone(near)
            else:
                os.kill(near, signal.SIGKILL)
                os.kill(far, signal.SIGKILL)
