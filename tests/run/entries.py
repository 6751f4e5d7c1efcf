"""What the workers of test_isolate run. Imported by the fork server's children, never by the tests themselves."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time


def serve(channel, payload):
    """Do what each item says."""
    for item in channel.items():
        ACTIONS[item["do"]](channel, item, payload)


def by_hand(channel, payload):
    """Speak the protocol without the help of `items`."""
    while "item" in (message := channel.receive()):
        channel.send({"echo": message["item"]})
        channel.send({"done": True})
    channel.close()


def die_at_start(channel, payload):
    sys.exit("no licence found")


def hang_at_start(channel, payload):
    time.sleep(1000)


def die_at_first_start(channel, payload):
    """End at once unless somebody did before."""
    with open(payload["marker"], "a+") as marker:
        marker.seek(0)
        first = not marker.read()
        marker.write("been here")
    if first:
        os._exit(9)
    serve(channel, payload)


def say_farewell(channel, payload):
    """Leave a word in a file when told to stop."""
    serve(channel, payload)
    with open(payload["marker"], "w") as marker:
        marker.write("stopped")


def talk_out_of_turn(channel, payload):
    channel.send({"hello": "nobody asked"})
    time.sleep(1000)


def _echo(channel, item, payload):
    channel.send({"echo": item.get("value"), "payload": payload, "pid": os.getpid()})


def _count(channel, item, payload):
    for step in range(item["steps"]):
        channel.send({"step": step})
        time.sleep(item["pause"])


def _variable(channel, item, payload):
    channel.send({"value": os.environ.get(item["name"]), "modules": [m for m in item["modules"] if m in sys.modules]})


def _large(channel, item, payload):
    channel.send({"text": "x" * item["size"]})


def _segfault(channel, item, payload):
    channel.send({"announced": "the case that crashes"})
    print("about to read address 0")
    ctypes.string_at(0)


def _signal(channel, item, payload):
    os.kill(os.getpid(), item["number"])


def _exit_hard(channel, item, payload):
    os._exit(3)


def _exit(channel, item, payload):
    sys.exit(item["code"])


def _raise(channel, item, payload):
    raise LookupError("a distinctive message")


def _hang(channel, item, payload):
    print("hanging now")
    time.sleep(1000)


def _hang_stubbornly(channel, item, payload):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)


def _target(name):
    """What a descriptor is; nothing for the one that lists the folder, which is closed by now."""
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:
        return ""


def _surroundings(channel, item, payload):
    """Tell what a worker may not share with its parent."""
    channel.send(
        {
            "leads its group": os.getpgid(0) == os.getpid(),
            "input": os.readlink("/proc/self/fd/0"),
            "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
            "sockets": sum(_target(name).startswith("socket:") for name in os.listdir("/proc/self/fd")),
        }
    )


def _print(channel, item, payload):
    megabyte = "y" * (1 << 20)
    print(megabyte)
    print(megabyte, file=sys.stderr)
    os.write(1, b"\nraw\n")
    subprocess.run(["echo", "from a program"], check=True)


def _say_and_die(channel, item, payload):
    os.write(2, bytes.fromhex(item["text"]))
    os._exit(4)


def _spawn_and_hang(channel, item, payload):
    """Start a program in the worker's process group, and one that has left it, and never answer."""
    near = subprocess.Popen(["sleep", "1000"])
    far = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    channel.send({"pids": [os.getpid(), near.pid, far.pid]})
    time.sleep(1000)


def _write_raw(channel, item, payload):
    os.write(channel.fileno(), bytes.fromhex(item["bytes"]))
    time.sleep(1000)


def _close_channel(channel, item, payload):
    channel.close()
    time.sleep(1000)


ACTIONS = {
    "echo": _echo,
    "count": _count,
    "variable": _variable,
    "large": _large,
    "segfault": _segfault,
    "signal": _signal,
    "exit hard": _exit_hard,
    "exit": _exit,
    "raise": _raise,
    "hang": _hang,
    "hang stubbornly": _hang_stubbornly,
    "surroundings": _surroundings,
    "print": _print,
    "say and die": _say_and_die,
    "spawn and hang": _spawn_and_hang,
    "write raw": _write_raw,
    "close channel": _close_channel,
}
