"""The engine of GPUs: `ndx._array.engine.Engine`, computed by CuPy."""

from ndx._array.engine import Engine
from ndx._cuda import transfer
from ndx._cuda.bridge import index_of
from ndx._cuda.calls import function_of
from ndx._cuda.fusing import FusedCall
from ndx._cuda.numpy_functions import numpy_function
from ndx._cuda.overrides_elementwise import check_power, computed
from ndx._cuda.overrides_indexing import fill, get_item, set_item
from ndx._cuda.overrides_other import OVERRIDES
from ndx._cuda.session import session_for, session_of
from ndx.backends import _cupy

__all__ = ["CudaEngine"]


class CudaEngine(Engine):
    """Computes on NVIDIA's GPUs.

    Most functions are those of ``array_api_compat.cupy`` as they are.
    """

    def compute(self, name, /, *args, **kwargs):
        """Compute a function of the namespace by CuPy, or by its override."""
        session = session_for(args, kwargs)
        override = OVERRIDES.get(name)
        if override is not None:
            return override(session, *args, **kwargs)
        return session.compute(function_of(name), args, kwargs)

    def elementwise(self, name, operands, dtype, out=None):
        """Compute an operation in the dtype of its operands."""
        session = session_for(operands, out)
        if name == "pow":
            check_power(*operands)
        with session.at_work():
            result = computed(name, [session.unwrap(x) for x in operands])
            if out is None:
                return session.wrap(result.astype(dtype, copy=False))
            session.unwrap(out)[...] = result
        return out

    def matmul(self, x1, x2, out=None):
        """Multiply matrices."""
        session = session_for(x1, x2, out)
        with session.at_work():
            result = function_of("matmul")(session.unwrap(x1), session.unwrap(x2))
            if out is None:
                return session.wrap(result.astype(x1.dtype, copy=False))
            if tuple(result.shape) != out.shape:
                msg = (
                    f"matmul: the output has shape {out.shape}, but the product has "
                    f"shape {tuple(result.shape)}"
                )
                raise ValueError(msg)
            session.unwrap(out)[...] = result
        return out

    def fill(self, x, value):
        """Set all elements to that of an array without axes, on the CPU."""
        session = session_for(x)
        with session.at_work():
            fill(session.unwrap(x), value[()])

    def upload(self, x, device, *, detached=False):
        """Return a copy on a GPU."""
        return transfer.upload(session_of(index_of(device)), x, detached=detached)

    fused = FusedCall
    numpy_function = staticmethod(numpy_function)
    get_item = staticmethod(get_item)
    set_item = staticmethod(set_item)
    copy_into = staticmethod(transfer.copy_into)
    to_device = staticmethod(transfer.to_device)
    from_other = staticmethod(transfer.from_gpu)
    interface = staticmethod(transfer.interface)
    hand_to_stream = staticmethod(transfer.hand_to_stream)
    device_count = staticmethod(_cupy.count_devices)
    synchronize = staticmethod(transfer.synchronize)
