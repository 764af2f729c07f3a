# typed.sh
