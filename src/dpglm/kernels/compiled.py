"""The decorators of compiled code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

# All are given: numba would let a function inherit those that are not from whoever has it compiled first.
_STRICT: dict[str, Any] = {
    "error_model": "numpy", "fastmath": False, "forceinline": False, "_nrt": False,
    "no_cpython_wrapper": False, "no_cfunc_wrapper": True,
}  # fmt: skip


def compiled(
    fastmath: frozenset[str] = frozenset(), nogil: bool = False, allocates: bool = False
) -> Callable[[Function], Function]:
    """Compile a function at its first call, and keep the result on disk until a kernel source changes.

    Parameters
    ----------
    fastmath : set of str
        LLVM's names of what the compiler may assume of floating-point numbers. It holds for what is
        ``inlined`` too, and for no other function.
    nogil : bool
        Whether other threads run meanwhile.
    allocates : bool
        Whether the function makes arrays. Others do not count references, which could make a loop over
        arrays take ten times as long.
    """
    options = {"fastmath": set(fastmath) or False, "nogil": nogil, "_nrt": allocates}

    def decorated(function: Function) -> Function:
        return cast(Function, _kept_on_disk(function, _STRICT | options))

    return decorated


def part(function: Function) -> Function:
    """Compile a function into each of those that call it.

    Python cannot call it: to compile what unpacks the arguments of such calls would take a sixth of the time.
    """
    result = _kept_on_disk(function, _STRICT | {"forceinline": True, "no_cpython_wrapper": True})

    def add_overload(compiled: Any) -> None:
        result.overloads[tuple(compiled.signature.args)] = compiled  # for compiled callers only

    def refuse(*arguments: Any, **named: Any) -> None:
        raise TypeError(f"{function.__name__} is part of compiled functions; call its py_func from Python")

    result.add_overload, result._compile_for_args = add_overload, refuse
    return cast(Function, result)


def _kept_on_disk(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Compile a function at its first use, and keep the result until a kernel source changes."""
    kernel: Any = njit(cache=True, **options)(function)
    if hasattr(kernel, "_cache"):  # it has none where numba's compilation is disabled
        # numba looks at the file of the function only, and would not notice a change of what it calls. As
        # part of the version, the stamp is read before types that may have been renamed since.
        file = kernel._cache._cache_file
        file._source_stamp, file._version = _stamp(), f"{file._version} {_stamp()}"
        file.load, file.save = _in_turn(file, file.load), _in_turn(file, file.save)
    return kernel


def inlined(function: Function) -> Function:
    """Copy a formula into those that call it, where it is compiled with their ``fastmath``.

    It may be a ``part``. It should be short: numba takes long to copy.
    """
    result: Any = njit(inline="always")(getattr(function, "py_func", function))
    return cast(Function, result)


def _in_turn(file: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method under a lock: two processes that save a function at once may give both the same file."""

    def locked(*arguments: Any) -> Any:
        with _lock(Path(file._cache_path)):
            return method(*arguments)

    return locked


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder, where the system has such locks and the folder can be written."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            file = held.enter_context((folder / "lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def _stamp() -> str:
    """A hash of all kernel sources."""
    digest = hashlib.sha256()
    for source in sorted(resources.files(__package__).iterdir(), key=lambda source: source.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()
