# Runs as a Job in the cloud region, in the image that the parameter script_image names.
# Its argument is the path of a JSON file.
set -eu
cat "$1"
