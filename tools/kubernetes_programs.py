"""Builds the programs of a real Kubernetes for the tests from Go modules, once, and keeps them outside the work tree.

Run by tools/setup-tests; `make setup-tests` is enough. The programs of a set lie in a folder whose name has the hash of
all that they are made of, so that checkouts with different versions do not disturb each other. Modules and Go's build
cache (4 GB) are in a temporary folder beside it, which is removed afterwards.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[1]
MODULES: Final = CHECKOUT / "tests" / "real" / "kubernetes" / "go"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cockpit-tests" / "kubernetes"
TOOLCHAIN: Final = "golang.org/toolchain@v0.0.1-go1.26.8.linux-{arch}"
"""Go as a module, for machines whose own is too old to build these; an old one can download it."""
FORGOTTEN_AFTER: Final = 14 * 86_400.0
"""Seconds after which a folder that no set-up asked for is removed."""
FLAGS: Final = "-p=2 -buildvcs=false -trimpath -mod=readonly -modcacherw"


@dataclass(frozen=True)
class ProgramSet:
    """Programs that are built from one module.

    module: the folder of go.mod; programs: the package of each by its name; sources: patterns of the files of ours that
    they are made of; stamps: variables of the linker by their names, where a value of the form `module@` becomes the
    version of that module; files: other files of modules to keep, as patterns by module.
    """

    name: str
    module: str
    programs: Mapping[str, str]
    sources: tuple[str, ...] = ("go.mod", "go.sum")
    stamps: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def folder(self) -> Path:
        """Where the built programs are, or will be."""
        return CACHE / f"{self.name}-{self._hash()}"

    def is_built(self) -> bool:
        return self.folder().is_dir()

    def _hash(self) -> str:
        """Hash of everything that the programs depend on."""
        module = MODULES / self.module
        sources = sorted(file for pattern in self.sources for file in module.glob(pattern))
        made = hashlib.sha256(repr((self.programs, self.stamps, self.files, FLAGS, TOOLCHAIN)).encode())
        for file in sources:
            made.update(f"{file.relative_to(module)}\n".encode() + file.read_bytes())
        return made.hexdigest()[:16]


_KUBERNETES: Final = "k8s.io/kubernetes"
_STAMPS: Final = {
    "k8s.io/component-base/version.gitVersion": f"{_KUBERNETES}@",
    "k8s.io/component-base/version.gitMajor": f"{_KUBERNETES}@0",
    "k8s.io/component-base/version.gitMinor": f"{_KUBERNETES}@1",
    "k8s.io/component-base/version.gitTreeState": "clean",
    "sigs.k8s.io/kwok/pkg/consts.Version": "sigs.k8s.io/kwok@",
}
SERVER: Final = ProgramSet(
    "server",
    "server",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": f"{_KUBERNETES}/cmd/kube-apiserver",
        "kube-controller-manager": f"{_KUBERNETES}/cmd/kube-controller-manager",
        "kube-scheduler": f"{_KUBERNETES}/cmd/kube-scheduler",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    },
    stamps=_STAMPS,
)
NODELET: Final = ProgramSet("nodelet", "server", {"nodelet": "./nodelet"}, sources=("go.mod", "go.sum", "nodelet/*.go"))
TRAINING_OPERATOR: Final = ProgramSet(
    "training-operator",
    "training-operator",
    {"training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1"},
    files={
        "github.com/kubeflow/training-operator": (
            "manifests/base/crds/kubeflow.org_mpijobs.yaml",
            "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
            "manifests/base/crds/kubeflow.org_tfjobs.yaml",
            "manifests/base/webhook/manifests.yaml",
        )
    },
)
SETS: Final = (SERVER, NODELET, TRAINING_OPERATOR)


def find_go() -> str | None:
    """Go's command, of whatever version: on PATH, or where Debian and go.dev install it."""
    usual = [*Path("/usr/lib").glob("go-*/bin/go"), Path("/usr/local/go/bin/go")]
    return shutil.which("go") or next(
        (str(each) for each in sorted(usual, reverse=True) if os.access(each, os.X_OK)), None
    )


def build(sets: tuple[ProgramSet, ...], go: str) -> None:
    """Build the sets that are not there. Raises CalledProcessError where Go fails; its words are on stderr."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with _alone(CACHE / "lock"):
        missing = [each for each in sets if not each.is_built()]
        for left_over in CACHE.glob(".build-*"):  # by a run that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        if missing:
            with tempfile.TemporaryDirectory(prefix=".build-", dir=CACHE, ignore_cleanup_errors=True) as fresh:
                builder = _Builder(Path(fresh), go)
                for each in missing:
                    builder.build(each)
        _forget_old(sets)


class _Builder:
    """Go with modules and a build cache of its own."""

    def __init__(self, folder: Path, go: str) -> None:
        self._folder = folder
        self._env = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-modcacherw",
            "GOWORK": "off",
            "GOMODCACHE": str(folder / "modules"),
            "GOCACHE": str(folder / "cache"),
            "GOTMPDIR": str(folder),
        }
        self._go = go
        if self._version() < _version_needed():
            self._take_newer()
        self._env["GOFLAGS"] = FLAGS

    def build(self, wanted: ProgramSet) -> None:
        """Build all programs of a set; its folder appears when all of them are there."""
        began = time.monotonic()
        module = MODULES / wanted.module
        programs = self._folder / wanted.name
        programs.mkdir()
        stamps = " ".join(f"-X {name}={self._stamp(module, value)}" for name, value in wanted.stamps.items())
        for name, package in wanted.programs.items():
            self._run("build", "-ldflags", f"-s -w {stamps}", "-o", str(programs / name), package, cwd=module)
        for source, patterns in wanted.files.items():
            folder = Path(self._run("list", "-m", "-f", "{{.Dir}}", source, cwd=module).strip())
            for file in (found for pattern in patterns for found in folder.glob(pattern)):
                target = programs / file.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        programs.rename(wanted.folder())
        _say(f"built {', '.join(wanted.programs)} in {time.monotonic() - began:.0f} s")

    def _run(self, *words: str, cwd: Path) -> str:
        done = subprocess.run(
            [self._go, *words], cwd=cwd, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode()

    def _version(self) -> tuple[int, ...]:
        return _numbers(self._run("env", "GOVERSION", cwd=self._folder))

    def _take_newer(self) -> None:
        """Download Go as a module. A module has no executable files, hence the change of modes."""
        arch = self._run("env", "GOARCH", cwd=self._folder).strip()
        said = self._run("mod", "download", "-json", TOOLCHAIN.format(arch=arch), cwd=self._folder)
        root = Path(json.loads(said)["Dir"])
        for folder in (root / "bin", root / "pkg" / "tool"):
            for file in folder.rglob("*"):
                file.chmod(0o755)
        self._go = str(root / "bin" / "go")
        self._env["GOROOT"] = str(root)

    def _stamp(self, module: Path, value: str) -> str:
        source, at, part = value.partition("@")
        if not at:
            return value
        version = self._run("list", "-m", "-f", "{{.Version}}", source, cwd=module).strip()
        return version.removeprefix("v").split(".")[int(part)] if part else version


def _version_needed() -> tuple[int, ...]:
    """Return the version of Go that all modules are content with."""
    lines = [re.search(r"^go (\S+)$", file.read_text(), re.MULTILINE) for file in MODULES.glob("*/go.mod")]
    return max(_numbers(found[1]) for found in lines if found)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version))


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Wait until no other process builds."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(present: tuple[ProgramSet, ...]) -> None:
    """Remove what other versions of the tests have built, unless they used it lately."""
    kept = {each.folder() for each in present}
    for folder in kept:
        os.utime(folder)
    now = max(folder.stat().st_mtime for folder in kept)
    for folder in CACHE.glob("*-*"):
        if folder not in kept and folder.stat().st_mtime < now - FORGOTTEN_AFTER:
            shutil.rmtree(folder, ignore_errors=True)


def _say(sentence: str) -> None:
    print(f"cockpit: {sentence}", file=sys.stderr, flush=True)


def main() -> int:
    """Build every set. A failure is reported, and the tests that need the programs are skipped."""
    if all(each.is_built() for each in SETS):
        for each in SETS:
            os.utime(each.folder())
        return 0
    go = find_go()
    if go is None:
        return 0  # tools/setup-tests has named the package
    _say(f"building Kubernetes for the tests into {CACHE} (once; about 7 minutes on two cores)")
    try:
        build(SETS, go)
    except (OSError, subprocess.CalledProcessError) as why:
        _say(f"Kubernetes could not be built ({why}); the tests that need it are skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
