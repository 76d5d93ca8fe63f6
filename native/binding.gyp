{
  # One target, one set of flags: instruction sets are chosen by function attributes inside the sources, never by flags,
  # so the binary runs on every processor of its architecture.
  "targets": [
    {
      "target_name": "trawl",
      "sources": ["addon/addon.cpp", "addon/jobs.cpp", "<!@(node -p \"require('node:fs').readdirSync('src').filter((name) => name.endsWith('.cpp')).map((name) => 'src/' + name).join(' ')\")"],
      "include_dirs": ["include", "src", "<!(node -p \"require('node-addon-api').include_dir\")"],
      "defines": ["NAPI_VERSION=8", "NODE_ADDON_API_CPP_EXCEPTIONS"],
      "cflags!": ["-fno-exceptions", "-O2"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++14", "-std=gnu++17", "-std=gnu++20"],
      "cflags_cc": ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wextra"],
      "ldflags": ["-pthread"],
      "xcode_settings": {
        "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
        "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
        "OTHER_CPLUSPLUSFLAGS": ["-O3", "-ffp-contract=off", "-fno-math-errno"]
      }
    }
  ]
}
