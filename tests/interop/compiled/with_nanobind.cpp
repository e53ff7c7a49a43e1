// Functions that take arrays through nanobind's types, as modules in C++ do.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using Writable = nb::ndarray<double, nb::ndim<1>, nb::device::cpu>;
using Readable = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
using Contiguous = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Doubles> static double total(const Doubles &x) {
    auto items = x.view();
    double total = 0.0;
    for (size_t i = 0; i < items.shape(0); ++i) {
        total += (double)(i + 1) * items(i);
    }
    return total;
}

static double add_one(Writable x) {
    auto items = x.view();
    for (size_t i = 0; i < items.shape(0); ++i) { items(i) += 1.0; }
    return total(x);
}

struct Array {
    explicit Array(Readable x) : kept(x) {}
    double now() const { return total(kept); }
    Readable kept;
};

NB_MODULE(with_nanobind, m) {
    m.def("total", &total<Readable>);
    m.def("total_as_it_is", &total<Readable>, nb::arg("x").noconvert());
    m.def("total_of_contiguous", &total<Contiguous>);
    m.def("total_of_writable", &total<Writable>);
    m.def("add_one", &add_one);
    nb::class_<Array>(m, "Array").def(nb::init<Readable>()).def("now", &Array::now);
}
