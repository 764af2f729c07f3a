# plain.sh
