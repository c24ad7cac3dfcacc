"""A policy as an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import goatrl
from goatrl.runs.graph import BATCH, INPUTS, OUTPUT, Graph, Policy
from goatrl.types import GoatError, Spec

OPSET, IR_VERSION = 17, 8  # of ONNX 1.12: old enough for what runs on robots


def load_package() -> Any:
    try:
        import onnx
    except ImportError:
        raise GoatError(
            "ONNX files need the package onnx: run `pip install 'goatrl[export]'`, or export with "
            "--format numpy"
        ) from None
    return onnx


def write(graph: Graph, spec: Spec, about: Mapping[str, str | int]) -> bytes:
    """The content of the file: inputs of any number of rows, and what it is about as metadata."""
    onnx = load_package()
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    sizes = spec.observation_dim, spec.goal_dim

    def described(name: str, size: int) -> Any:
        return helper.make_tensor_value_info(name, real, [BATCH, size])

    nodes = []
    for node in graph.nodes:
        attributes = {
            name: getattr(onnx.TensorProto, value) if name == "to" else value
            for name, value in node.attributes.items()
        }
        nodes.append(helper.make_node(node.op, node.inputs, [node.output], **attributes))
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "policy",
            [described(*pair) for pair in zip(INPUTS, sizes, strict=True)],
            [described(OUTPUT, spec.action_dim)],
            [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
        ),
        producer_name="goatrl",
        producer_version=goatrl.__version__,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, {name: str(value) for name, value in about.items()})
    onnx.checker.check_model(made, full_check=True)
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def run(content: bytes) -> tuple[str, Policy]:
    """As onnxruntime runs it, or where there is none, the slower reference of onnx."""
    session: Any
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        name, session = "onnx.reference", ReferenceEvaluator(content)
    else:
        name = "onnxruntime"
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return name, lambda *inputs: session.run(None, dict(zip(INPUTS, inputs, strict=True)))[0]
