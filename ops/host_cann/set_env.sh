# shellcheck shell=bash
# The environment of programs and build files that expect CANN: source this file, in bash or zsh.
#
# Sets ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME to the directory of this file, which has include and lib64 as an
# installation of CANN has them, and puts lib64 first in LD_LIBRARY_PATH.

ASCEND_HOME_PATH=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" >/dev/null && pwd)
ASCEND_TOOLKIT_HOME=$ASCEND_HOME_PATH
case ":${LD_LIBRARY_PATH:-}:" in
  *":$ASCEND_HOME_PATH/lib64:"*) ;;
  *) LD_LIBRARY_PATH=$ASCEND_HOME_PATH/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ;;
esac
export ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME LD_LIBRARY_PATH
