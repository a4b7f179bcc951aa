"""What the tests of emitted Python modules share."""
import inspect
import sys

checks = 0


def check(condition, what=""):
    global checks
    checks += 1
    if not condition:
        line = inspect.stack()[1]
        sys.exit(f"{line.filename}:{line.lineno}: {line.code_context[0].strip()} {what}")


def raises(kind, text, function, *arguments, **named):
    global checks
    checks += 1
    try:
        function(*arguments, **named)
    except kind as e:
        if str(e) != text:
            line = inspect.stack()[1]
            sys.exit(f"{line.filename}:{line.lineno}: expected {text!r}, got {str(e)!r}")
        return
    line = inspect.stack()[1]
    sys.exit(f"{line.filename}:{line.lineno}: expected {kind.__name__}: {text}")


def report():
    print(f"{checks} checks passed")
