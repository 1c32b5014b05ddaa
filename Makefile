# Two commands: `make demo` compares bundled reports, `make test` checks the project.
# Both set up .venv on first use; afterwards they take seconds to start.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out/demo
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

# The package index has PyTorch for NVIDIA GPUs alone, which takes 4 GB more than the one for processors.
# On Linux, where nothing leads to such a GPU, PyTorch's own index is tried first, and silently left
# where it cannot be reached. No other index is mixed with it: torchvision must be built for the same
# PyTorch. `make demo CPU_WHEELS=` does not try it.
CPU_WHEELS ?= https://download.pytorch.org/whl/cpu
# A driver, Windows' GPU under Linux, or a batch system, whose other machines may have GPUs.
GPU ?= $(shell for file in /dev/nvidiactl /dev/dxg; do test -e $$file && echo $$file; done; \
	for command in nvidia-smi sbatch qsub bsub; do command -v $$command; done; uname -s | grep -v Linux)

.PHONY: demo test test-all real paper lint types unit docs site perturbations test-gpu lowest wheel clean

demo: $(VENV)/.installed
	$(BIN)/vlscore demo --out $(OUT) --overwrite

# For every commit: minutes on two cores.
test: lint types unit

# Before a release, and at night: the tests marked `slow`, too.
test-all: lint types
	$(PYTEST) --hypothesis-profile drawn

# Makes the data set under perturbations/phantom again, and shows which of its changes metrics notice.
perturbations: $(VENV)/.installed-dev
	$(BIN)/python -m vlscore.data.phantom out/phantom --count 40 --seed 11 --split held_out
	$(BIN)/vlscore perturb out/phantom/studies.jsonl --out perturbations/phantom --overwrite
	$(BIN)/vlscore sensitivity --perturbations perturbations/phantom \
		--studies out/phantom/studies.jsonl --out out/sensitivity

# All tables on real films and reports (docs/real.md); what exists in WORK is not made again.
WORK ?= out/real
# One core, as docs/real.md says: on small matrices, more threads wait for each other.
real: export OMP_NUM_THREADS = 1
real: $(VENV)/.installed
	@test -d "$(DATA)/iu" || { echo "name the folder of docs/real.md: make real DATA=FOLDER"; exit 1; }
	$(BIN)/python benchmarks/real_encoders.py "$(DATA)" "$(WORK)" --out benchmarks/results/real_encoders.md
	$(BIN)/python benchmarks/real_imperfect.py "$(DATA)" "$(WORK)" --out benchmarks/results/real_imperfect.md
	test ! -d "$(DATA)/nih" || $(BIN)/python benchmarks/real_claims.py "$(DATA)" "$(WORK)" --out benchmarks/results/real_claims.md
	$(BIN)/python benchmarks/real_sensitivity.py "$(DATA)" "$(WORK)" --out benchmarks/results/real_sensitivity.md
	@test -d "$(DATA)/generated" || echo "$(DATA)/generated is absent: the tables of generators are left out"
	test ! -d "$(DATA)/generated" || $(BIN)/python benchmarks/real_generators.py "$(DATA)" "$(WORK)" --out benchmarks/results/real_generators.md
	@test -d "$(DATA)/radpref" || echo "$(DATA)/radpref is absent: the tables of RadPref are left out"
	test ! -d "$(DATA)/radpref" || $(BIN)/python benchmarks/radpref.py "$(DATA)/radpref" --out benchmarks/results/radpref.md

# The VLScore paper's numbers beside ours (docs/reproduce.md); what DATA lacks is named and left out.
paper: $(VENV)/.installed
	@test -d "$(DATA)" || { echo "name the folder of docs/reproduce.md: make paper DATA=FOLDER"; exit 1; }
	$(BIN)/python benchmarks/paper.py "$(DATA)" --work out/paper --out benchmarks/results/paper.md

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# One thread a worker, a file at a time: what a file prepares is prepared once. Some environments
# forbid Python to store bytecode: every process that a test starts would compile the package anew.
unit: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

# The examples of README.md and docs/, run as printed.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/test_docs.py

# The documentation as a site, in out/site. A warning is an error.
site: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs . out/site
	@echo "wrote out/site/docs/index.html"

# On a machine with a GPU: the tests that need one, and what its stages take.
test-gpu: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m gpu
	$(BIN)/python benchmarks/gpu_stages.py --out benchmarks/results/gpu_stages.md

# All tests with the oldest dependencies that pyproject.toml admits, in out/lowest.
lowest: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --clear --python $(BIN)/python out/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra dev \
		pyproject.toml --output-file out/lowest.txt
	$(BIN)/uv pip install --python out/lowest -r out/lowest.txt
	PYTHONPATH=$(CURDIR) OMP_NUM_THREADS=1 out/lowest/bin/python -m pytest -n auto \
		--maxprocesses 4 --dist loadfile

# Builds the wheel, installs it with its dependencies into out/clean, and tries it from elsewhere.
wheel: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf out/dist && $(BIN)/python -m build --outdir out/dist
	$(BIN)/python .github/wheel_contents.py out/dist/*.whl
	$(BIN)/python -m venv --clear out/clean
	out/clean/bin/python -m pip install --quiet --disable-pip-version-check out/dist/*.whl
	.github/smoke.sh out/clean/bin

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "vlscore needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV): some five minutes, and 2 to 6.5 GB"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: | $(VENV)/bin/python
ifneq ($(CPU_WHEELS),)
	@test -n "$(GPU)" || PIP_CONFIG_FILE=/dev/null PIP_EXTRA_INDEX_URL= PIP_FIND_LINKS= \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		--timeout 5 --retries 0 --index-url $(CPU_WHEELS) torch torchvision >/dev/null 2>&1 || true
endif
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) out
