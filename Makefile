# Two commands: `make demo` scores bundled studies, `make test` checks the project.
# Both set up .venv on first use; afterwards they take seconds to start.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out/demo

.PHONY: demo test lint types unit perturbations clean

demo: $(VENV)/.installed
	$(BIN)/vlscore evaluate weights/phantom/demo/studies.jsonl --out $(OUT) --overwrite --show 12

test: lint types unit

# Makes the data set under perturbations/phantom again, and shows which of its changes metrics notice.
perturbations: $(VENV)/.installed-dev
	$(BIN)/python -m vlscore.phantom out/phantom --studies 40 --seed 11 --phrasings held_out
	$(BIN)/vlscore perturb out/phantom/studies.jsonl --out perturbations/phantom --overwrite
	$(BIN)/vlscore sensitivity --perturbations perturbations/phantom \
		--studies out/phantom/studies.jsonl --out out/sensitivity

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# One thread a worker, a file at a time: what a file prepares is prepared once.
unit: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "vlscore needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) out
