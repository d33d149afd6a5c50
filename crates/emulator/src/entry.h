// Comes after a kernel's text, with EMULATOR_KERNEL its name: what the runtime calls.

template <size_t... I> struct EmulatedIndices {};
template <size_t N, size_t... I> struct EmulatedRange : EmulatedRange<N - 1, N - 1, I...> {};
template <size_t... I> struct EmulatedRange<0, I...> { typedef EmulatedIndices<I...> Type; };
template <class T> struct EmulatedWritable { static const uint8_t value = 1; };
template <class T> struct EmulatedWritable<const T> { static const uint8_t value = 0; };

template <class P, class... T> struct EmulatedSignature {
    static const uint32_t params_bytes = sizeof(P), bindings = sizeof...(T);

    template <size_t... I>
    static void call(void (*kernel)(P, T*...), const void* params, void* const* buffers, EmulatedIndices<I...>) {
        kernel(*static_cast<const P*>(params), static_cast<T*>(buffers[I])...);
    }
};

template <class P, class... T> static EmulatedSignature<P, T...> emulator_signature(void (*)(P, T*...));
template <class P, class... T> static void emulator_forward(void (*kernel)(P, T*...), const void* params,
                                                                void* const* buffers) {
    EmulatedSignature<P, T...>::call(kernel, params, buffers, typename EmulatedRange<sizeof...(T)>::Type());
}
template <class S> struct EmulatedFlags;
template <class P, class... T> struct EmulatedFlags<EmulatedSignature<P, T...>> {
    static const uint8_t values[sizeof...(T) + 1];
};
template <class P, class... T>
const uint8_t EmulatedFlags<EmulatedSignature<P, T...>>::values[sizeof...(T) + 1] = {EmulatedWritable<T>::value..., 0};

typedef decltype(emulator_signature(EMULATOR_KERNEL)) EmulatedOwn;

extern "C" {
const uint32_t emulator_params_bytes = EmulatedOwn::params_bytes;
const uint32_t emulator_binding_count = EmulatedOwn::bindings;
const uint8_t* emulator_binding_flags() { return EmulatedFlags<EmulatedOwn>::values; }
void emulator_call(const void* params, void* const* buffers) { emulator_forward(EMULATOR_KERNEL, params, buffers); }
}
