"""The command line program `anabranch` of the package."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line. Returns the exit code."""
    words = sys.argv[1:]
    if words[:1] == ["sweep"] and any(word == "--dask" or word.startswith("--dask=") for word in words):
        return _sweep_on_dask(words[1:])
    # The program handles signals; Python's handler would wait for an interpreter that is not running.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _native.command(["anabranch", *words])


def _sweep_on_dask(words: list[str]) -> int:
    """`anabranch sweep FILE --dask ADDRESS`: the workers of a Dask scheduler run the sweep."""
    import argparse

    from . import _errors
    from ._errors import BrokenError, MissingExtra, ScenarioError, needs
    from ._sweep import sweep

    _errors.words_of_python = False

    parser = argparse.ArgumentParser(prog="anabranch sweep", description=_sweep_on_dask.__doc__)
    parser.add_argument("file", help="a file with a [sweep] table")
    parser.add_argument("--dask", required=True, metavar="ADDRESS", help="of the scheduler, such as tcp://node1:8786")
    parser.add_argument("--out", help="the store")
    parser.add_argument("--again", nargs="?", const="all", choices=["failed", "all"], help="do finished or failed runs anew")
    parser.add_argument("--replace", action="store_true", help="replace the tables of another sweep")
    parser.add_argument("--gather", action="store_true", help="workers share no file system: they send rows back")
    given = parser.parse_args(words)
    try:
        try:
            from distributed import Client
        except ImportError:
            raise needs("distributed", "dask") from None
        try:
            client = Client(given.dask, timeout="10s")
        except (OSError, ValueError, TimeoutError) as error:
            raise ScenarioError(f"--dask: no reply from a Dask scheduler at {given.dask}: {error}", place="--dask") from None
        with client:
            again = {None: False, "all": True}.get(given.again, given.again)
            done = sweep(given.file, out=given.out, client=client, again=again, replace=given.replace, gather=given.gather)
    except (ScenarioError, MissingExtra) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(done)
    return 3 if done.failed else 0
