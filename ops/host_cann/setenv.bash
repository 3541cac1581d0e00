# shellcheck shell=bash
# Older build scripts for CANN source bin/setenv.bash instead of set_env.sh.

# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../set_env.sh"
