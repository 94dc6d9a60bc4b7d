"""The notebooks of examples run from the first cell to the last, in a kernel of their own; their assertions hold."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (the extra test has it)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (the extra test has it)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (the extra test has it)")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [each.output_type for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
    assert "display_data" in shown, "a figure is drawn"
    assert "execute_result" in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_results_and_says_what_must_be_so(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.outputs or cell.execution_count for cell in cells if cell.cell_type == "code")
    assert any("\nassert " in f"\n{cell.source}" for cell in cells)
    assert cells[0].source.startswith("# ")
