"""Becomes a process of Milvus whose files are in a folder: `milvus_start.py FOLDER run standalone`. The package has the program
compressed; its Python part writes its configuration, of which the environment replaces values."""
import os
import sys

import milvus

folder = os.path.abspath(sys.argv[1])
server = milvus.MilvusServer(milvus.MilvusServerConfig(), debug=True)
server.set_base_dir(folder)
# The package takes another port where one is still held by connections to a killed Milvus; a restarted one keeps its ports.
if not os.path.exists(os.path.join(folder, "configs", "milvus.yaml")):
    server.config.resolve()
milvus._initialize_data_files(folder)
program = server.get_milvus_executable_path()
os.chdir(folder)
defaults = {
    "DEPLOY_MODE": "STANDALONE",
    "METRICS_PORT": "9091",
    "MILVUS_RUN_DIR": os.path.join(folder, "run"),
}
os.environ.update(
    {name: os.environ.get(name, value) for name, value in defaults.items()},
    # The user root with the password Milvus.
    COMMON_SECURITY_AUTHORIZATIONENABLED="true",
    LD_LIBRARY_PATH=os.path.dirname(program),
)
# One process, so that a signal to it reaches Milvus.
os.execv(program, [program, *sys.argv[2:]])
