"""``python -m ndx``: record a script's memory, or describe the installation."""

import argparse
import os
import sys
from importlib.util import find_spec

from ndx._cli.info import report
from ndx._cli.trace import new_trace, run_traced


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m ndx",
        description="ndx: the array library whose memory you control.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser(
        "info",
        help="print versions, CPU features, backends, limits and defaults",
        description="Print versions, CPU features, backends, limits and defaults.",
    )
    trace = commands.add_parser(
        "trace",
        help="run a script and save a picture of its memory",
        description="Run a script, or a module, as `python` would, and save what "
        "happened to its arrays: also if it fails. Options for this command stand "
        "before the script; what follows it is the script's.",
        usage="python -m ndx trace [--output FILE] [options] (SCRIPT | -m MODULE) ...",
    )
    trace.add_argument(
        "-o",
        "--output",
        default="trace.html",
        metavar="FILE",
        help=".html (default: %(default)s), or .json for Perfetto",
    )
    trace.add_argument(
        "--stacks",
        type=int,
        default=4,
        metavar="N",
        help="lines of the call stack to keep (default: %(default)s)",
    )
    trace.add_argument(
        "--max-events",
        type=int,
        default=1_000_000,
        metavar="N",
        help="events to keep (default: %(default)s)",
    )
    trace.add_argument(
        "-m", "--module", action="store_true", help="run a module, as `python -m` does"
    )
    trace.add_argument("script", metavar="SCRIPT", help="the script, or the module")
    trace.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    return parser


def main(arguments=None):
    """Run a command; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "info":
        print(report())
        return 0
    try:
        trace = new_trace(options.output, options.max_events, options.stacks)
    except ValueError as error:
        parser.error(str(error))
    if options.module:
        if find_spec(options.script.partition(".")[0]) is None:
            parser.error(f"no module named {options.script!r}")
    elif not os.access(options.script, os.R_OK):
        parser.error(f"can't read the script {options.script!r}")
    return run_traced(
        trace, options.output, options.script, options.arguments, options.module
    )


if __name__ == "__main__":
    sys.exit(main())
