// Functions that take arrays through pybind11's types, as modules in C++ do.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>

namespace py = pybind11;
using Doubles = py::array_t<double>;

static double total_of(const py::buffer_info &info) {
    if (info.ndim != 1 || info.format != py::format_descriptor<double>::format()) {
        throw std::invalid_argument("not a vector of doubles");
    }
    double total = 0.0;
    for (py::ssize_t i = 0; i < info.shape[0]; ++i) {
        const char *item = static_cast<const char *>(info.ptr) + i * info.strides[0];
        total += (double)(i + 1) * *reinterpret_cast<const double *>(item);
    }
    return total;
}

static double total(const Doubles &x) {
    auto items = x.unchecked<1>();
    double total = 0.0;
    for (py::ssize_t i = 0; i < items.shape(0); ++i) {
        total += (double)(i + 1) * items(i);
    }
    return total;
}

static double add_one(Doubles x) {
    auto items = x.mutable_unchecked<1>();
    for (py::ssize_t i = 0; i < items.shape(0); ++i) { items(i) += 1.0; }
    return total(x);
}

static double add_one_to_buffer(const py::buffer &x) {
    py::buffer_info info = x.request(true);
    total_of(info);
    for (py::ssize_t i = 0; i < info.shape[0]; ++i) {
        *reinterpret_cast<double *>((char *)info.ptr + i * info.strides[0]) += 1.0;
    }
    return total_of(info);
}

struct Array {
    explicit Array(Doubles x) : kept(std::move(x)) {}
    double now() const { return total(kept); }
    Doubles kept;
};

struct Buffer {
    explicit Buffer(const py::buffer &x) : kept(x.request()) {}
    double now() const { return total_of(kept); }
    py::buffer_info kept;
};

PYBIND11_MODULE(with_pybind11, m) {
    m.def("total", &total);
    m.def("total_as_it_is", &total, py::arg("x").noconvert());
    m.def("total_of_buffer", [](const py::buffer &x) { return total_of(x.request()); });
    m.def("add_one", &add_one);
    m.def("add_one_to_buffer", &add_one_to_buffer);
    m.def("doubled", [](const Doubles &x) {
        Doubles result(x.size());
        for (py::ssize_t i = 0; i < x.size(); ++i) {
            result.mutable_at(i) = 2.0 * x.at(i);
        }
        return result;
    });
    py::class_<Array>(m, "Array").def(py::init<Doubles>()).def("now", &Array::now);
    py::class_<Buffer>(m, "Buffer")
        .def(py::init<const py::buffer &>())
        .def("now", &Buffer::now);
}
