// Runs of elements of any dtype as numbers of one type, and back.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/strided.h"

namespace opserve::kernels {

// An element of a BOOL tensor: true if its byte is not 0.
struct BoolByte {
  uint8_t byte;
};

// Calls visit(Element{}) with the type of `dtype`.
template <typename Visitor>
auto VisitAnyElement(Dtype dtype, Visitor visit) {
  switch (dtype) {
    case Dtype::kFloat:
      return visit(float{});
    case Dtype::kFloat16:
      return visit(Half{});
    case Dtype::kBfloat16:
      return visit(Bfloat16{});
    case Dtype::kDouble:
      return visit(double{});
    case Dtype::kInt8:
      return visit(int8_t{});
    case Dtype::kUint8:
      return visit(uint8_t{});
    case Dtype::kInt16:
      return visit(int16_t{});
    case Dtype::kInt32:
      return visit(int32_t{});
    case Dtype::kInt64:
      return visit(int64_t{});
    case Dtype::kBool:
      return visit(BoolByte{});
  }
  __builtin_unreachable();
}

// Calls visit(C{}) with what tensors of these kinds are computed in: float, double or int64_t.
constexpr bool IsFloating(Dtype dtype) {
  return dtype == Dtype::kFloat || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ||
         dtype == Dtype::kDouble;
}
template <typename Visitor>
auto VisitNumber(Dtype dtype, Visitor visit) {
  if (dtype == Dtype::kDouble) return visit(double{});
  if (IsFloating(dtype)) return visit(float{});
  return visit(int64_t{});
}

// The nearest integer towards 0 that I has; NaN is 0.
template <typename I, typename F>
I TruncatedTo(F value) {
  constexpr F kEnd = static_cast<F>(uint64_t{1} << (std::numeric_limits<I>::digits - 1)) * 2;
  if (value >= kEnd) return std::numeric_limits<I>::max();
  if (value <= static_cast<F>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  return value == value ? static_cast<I>(value) : I{0};
}

// An element as a number, and a number as an element: floating ones rounded to nearest, integers
// wrapped.
template <typename C, typename Element>
[[gnu::always_inline]] inline C NumberOf(Element element) {
  if constexpr (std::is_same_v<Element, BoolByte>) {
    return static_cast<C>(element.byte != 0);
  } else if constexpr (std::is_integral_v<Element>) {
    return static_cast<C>(element);
  } else if constexpr (std::is_integral_v<C>) {
    return TruncatedTo<C>(Widened(element));
  } else {
    return static_cast<C>(Widened(element));
  }
}

template <typename Element, typename C>
[[gnu::always_inline]] inline Element ElementOf(C number) {
  if constexpr (std::is_same_v<Element, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(number != 0)};
  } else if constexpr (std::is_integral_v<Element>) {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<Element>(number);
    } else {
      return TruncatedTo<Element>(number);
    }
  } else if constexpr (std::is_same_v<Element, double>) {
    return static_cast<double>(number);
  } else {
    return Narrowed<Element>(static_cast<float>(number));
  }
}

// numbers[i * pitch] = element i * stride from `first` on.
template <typename C, typename Element>
void LoadRun(const Element* first, int64_t stride, int64_t count, C* __restrict numbers,
             int64_t pitch = 1) {
  if (stride == 1 && pitch == 1) {
    if constexpr (std::is_same_v<C, float> &&
                  (std::is_same_v<Element, float> || std::is_same_v<Element, Half> ||
                   std::is_same_v<Element, Bfloat16>)) {
      ConvertBlock(first, count, numbers);
    } else {
      for (int64_t i = 0; i < count; ++i) numbers[i] = NumberOf<C>(first[i]);
    }
  } else if (stride == 0) {
    const C number = NumberOf<C>(*first);
    for (int64_t i = 0; i < count; ++i) numbers[i * pitch] = number;
  } else {
    if constexpr (std::is_same_v<C, Element> && kHasEven<C>) {
      if (stride == 2 && pitch == 1) return CopyEven(first, count, numbers);
    }
    for (int64_t i = 0; i < count; ++i) numbers[i * pitch] = NumberOf<C>(first[i * stride]);
  }
}

// The reverse.
template <typename C, typename Element>
void StoreRun(const C* __restrict numbers, int64_t pitch, int64_t count, Element* first,
              int64_t stride) {
  if (stride == 1 && pitch == 1) {
    if constexpr (std::is_same_v<C, float> &&
                  (std::is_same_v<Element, float> || std::is_same_v<Element, Half> ||
                   std::is_same_v<Element, Bfloat16>)) {
      ConvertBlock(numbers, count, first);
    } else {
      for (int64_t i = 0; i < count; ++i) first[i] = ElementOf<Element>(numbers[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) first[i * stride] = ElementOf<Element>(numbers[i * pitch]);
  }
}

// Element `offset` of a tensor.
template <typename C>
C LoadNumber(Dtype dtype, const void* address, int64_t offset) {
  return VisitAnyElement(dtype, [&]<typename Element>(Element) {
    return NumberOf<C>(static_cast<const Element*>(address)[offset]);
  });
}
template <typename C>
void StoreNumber(C number, Dtype dtype, void* address, int64_t offset) {
  VisitAnyElement(dtype, [&]<typename Element>(Element) {
    static_cast<Element*>(address)[offset] = ElementOf<Element>(number);
  });
}

// The value of a scalar.
template <typename C>
C NumberOf(const Scalar& scalar) {
  if constexpr (std::is_integral_v<C>) {
    return scalar.integer;
  } else {
    return static_cast<C>(scalar.real);
  }
}

}  // namespace opserve::kernels
