"""Becomes a standalone Milvus whose data are in a folder. The package has the program compressed; its Python part writes its configuration."""
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
os.environ.update(
    DEPLOY_MODE="STANDALONE",
    METRICS_PORT="9091",
    # The user root with the password Milvus.
    COMMON_SECURITY_AUTHORIZATIONENABLED="true",
    MILVUS_RUN_DIR=os.path.join(folder, "run"),
    LD_LIBRARY_PATH=os.path.dirname(program),
)
# One process, so that a signal to it reaches Milvus.
os.execv(program, [program, "run", "standalone"])
