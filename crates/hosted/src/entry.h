// Comes after a kernel's text, with HOSTED_KERNEL its name: what the runtime calls.

template <size_t... I> struct HostedIndices {};
template <size_t N, size_t... I> struct HostedRange : HostedRange<N - 1, N - 1, I...> {};
template <size_t... I> struct HostedRange<0, I...> { typedef HostedIndices<I...> Type; };
template <class T> struct HostedWritable { static const uint8_t value = 1; };
template <class T> struct HostedWritable<const T> { static const uint8_t value = 0; };

template <class P, class... T> struct HostedSignature {
    static const uint32_t params_bytes = sizeof(P), bindings = sizeof...(T);

    template <size_t... I>
    static void call(void (*kernel)(P, T*...), const void* params, void* const* buffers, HostedIndices<I...>) {
        kernel(*static_cast<const P*>(params), static_cast<T*>(buffers[I])...);
    }
};

template <class P, class... T> static HostedSignature<P, T...> hosted_signature(void (*)(P, T*...));
template <class P, class... T> static void hosted_forward(void (*kernel)(P, T*...), const void* params,
                                                                void* const* buffers) {
    HostedSignature<P, T...>::call(kernel, params, buffers, typename HostedRange<sizeof...(T)>::Type());
}
template <class S> struct HostedFlags;
template <class P, class... T> struct HostedFlags<HostedSignature<P, T...>> {
    static const uint8_t values[sizeof...(T) + 1];
};
template <class P, class... T>
const uint8_t HostedFlags<HostedSignature<P, T...>>::values[sizeof...(T) + 1] = {HostedWritable<T>::value..., 0};

typedef decltype(hosted_signature(HOSTED_KERNEL)) HostedOwn;

extern "C" {
const uint32_t hosted_params_bytes = HostedOwn::params_bytes;
const uint32_t hosted_binding_count = HostedOwn::bindings;
const uint8_t* hosted_binding_flags() { return HostedFlags<HostedOwn>::values; }
void hosted_call(const void* params, void* const* buffers) { hosted_forward(HOSTED_KERNEL, params, buffers); }
}
