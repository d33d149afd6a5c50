#!/bin/sh
# Tests every device of this machine, then benches it: ./run.sh [arguments of the bench].
# CUDA kernels need NVRTC: of a CUDA toolkit, or a folder `nvrtc` beside this script with the library's files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/nvrtc" ] && export LD_LIBRARY_PATH="$here/nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$here/evariste-trials" test --all
"$here/evariste-bench" --peers "$@"
