// `npm run prebuilds`: compiles the native engine for every target into prebuilds/, with the checksums in prebuilds/prebuilds.json.
// `npm run prebuilds -- linux-x64 linuxmusl-arm64` compiles these targets; `-- --list` compiles nothing and makes the list of the
// binaries that are there (a workflow collects them from several runners). Beside each binary, `sources` has the digest of the
// sources from which it was compiled; binaries of other sources are not listed.
//
// The compiler is zig's clang, one pinned version from PyPI in the user's cache folder, for every target: it has the headers and
// stubs of old glibc versions, of musl and of macOS, so the binaries do not depend on the system that builds them.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { digestOfSources, makeAddon } from './build-native.mjs';
import { cachePath } from './cached-packages.mjs';
import { announce, done, fail, root, run } from './steps.mjs';

/** The version of the compiler. */
export const ZIG = '0.17.1';
/** The C library of every Linux on which the official builds of Node.js 22 and newer run. */
const GLIBC = '2.28';
const FOLDER = join(root, 'prebuilds');
const LIST = join(FOLDER, 'prebuilds.json');

/** zig's name of each target and what the linker needs besides. */
const TARGETS = {
  'linux-x64': { triple: `x86_64-linux-gnu.${GLIBC}`, link: '-shared -Wl,-s' },
  'linux-arm64': { triple: `aarch64-linux-gnu.${GLIBC}`, link: '-shared -Wl,-s' },
  'linuxmusl-x64': { triple: 'x86_64-linux-musl', link: '-shared -Wl,-s' },
  'linuxmusl-arm64': { triple: 'aarch64-linux-musl', link: '-shared -Wl,-s' },
  'darwin-arm64': { triple: 'aarch64-macos.12.0', link: '-shared -undefined dynamic_lookup -Wl,-s' },
  'darwin-x64': { triple: 'x86_64-macos.12.0', link: '-shared -undefined dynamic_lookup -Wl,-s' },
};

/** The version of Node-API for which the engine is compiled. */
export const NODE_API = Number(/-DNAPI_VERSION=(\d+)/.exec(readFileSync(join(root, 'native', 'Makefile'), 'utf8'))[1]);

export const PREBUILD_TARGETS = Object.keys(TARGETS);

/** The newest version of glibc whose symbols a binary needs, such as `2.14`; undefined if it needs none. */
export function neededGlibc(binary) {
  const versions = [...binary.toString('latin1').matchAll(/GLIBC_(\d+)\.(\d+)/g)];
  const newest = versions.sort((a, b) => a[1] - b[1] || a[2] - b[2]).at(-1);
  return newest === undefined ? undefined : `${newest[1]}.${newest[2]}`;
}

/** Whether prebuilds/ has the target's binary, made from the present sources. */
export function prebuiltIsCurrent(target) {
  const list = readList();
  return list?.sources === digestOfSources('') && target in list.binaries;
}

function readList() {
  return existsSync(LIST) ? JSON.parse(readFileSync(LIST, 'utf8')) : undefined;
}

/** Compiles the targets and writes the list. */
export async function prebuild(targets) {
  // Binaries of earlier sources must not stay beside those of the present ones.
  if (readList()?.sources !== digestOfSources('')) rmSync(FOLDER, { recursive: true, force: true });
  const zig = await zigCommand();
  for (const target of targets) {
    const { triple, link } = TARGETS[target];
    const build = join('build', 'prebuild', target);
    const started = announce(`Compiling for ${target} (${triple})`);
    const sources = digestOfSources('');
    const output = await makeAddon([
      `BUILD=${build}`,
      `CXX=${zig} c++ -target ${triple} -Wno-missing-braces`,
      `ADDON_LINK=${link}`,
    ]);
    if (output !== undefined) fail(`\n${output.slice(-4000)}\nThe native engine does not compile for ${target}.`);
    mkdirSync(join(FOLDER, target), { recursive: true });
    const file = join(FOLDER, target, 'trawl.node');
    // Before the binary is replaced, so that an interrupted run leaves no binary with the digest of other sources.
    rmSync(stampOf(target), { force: true });
    writeFileSync(`${file}.new`, readFileSync(join(root, 'native', build, 'addon', 'trawl.node')));
    chmodSync(`${file}.new`, 0o755);
    renameSync(`${file}.new`, file);
    writeFileSync(stampOf(target), sources);
    done(started);
  }
  writeList();
}

/** The file with the digest of the sources from which the target's binary was compiled. */
function stampOf(target) {
  return join(FOLDER, target, 'sources');
}

/** Writes the list of the binaries that are there. Fails if one was compiled from other sources than the present ones. */
function writeList() {
  const sources = digestOfSources('');
  const isOther = (target) => !existsSync(stampOf(target)) || readFileSync(stampOf(target), 'utf8') !== sources;
  const others = PREBUILD_TARGETS.filter((target) => existsSync(join(FOLDER, target, 'trawl.node')) && isOther(target));
  if (others.length > 0)
    fail(
      `The prebuilt binaries for ${others.join(', ')} were not compiled from the present sources. Compile them again: ` +
        `npm run prebuilds -- ${others.join(' ')}`,
    );
  const binaries = {};
  mkdirSync(FOLDER, { recursive: true });
  for (const target of PREBUILD_TARGETS) {
    const file = join(FOLDER, target, 'trawl.node');
    if (!existsSync(file)) continue;
    const bytes = readFileSync(file);
    const glibc = target.startsWith('linux-') ? neededGlibc(bytes) : undefined;
    if (glibc !== undefined && isNewer(glibc, GLIBC))
      fail(`${file} needs glibc ${glibc}; expected ${GLIBC} at most, which Node.js itself needs.`);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    binaries[target] = { sha256, bytes: bytes.length, ...(glibc === undefined ? {} : { glibc }) };
  }
  const list = { nodeApi: NODE_API, compiler: `zig ${ZIG}`, sources, binaries };
  writeFileSync(`${LIST}.new`, `${JSON.stringify(list, null, 2)}\n`);
  renameSync(`${LIST}.new`, LIST);
}

/** Whether version `a` of glibc is newer than version `b`. */
function isNewer(version, than) {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  return (a[0] - b[0] || a[1] - b[1]) > 0;
}

/** zig from PyPI, installed once into the user's cache folder. */
async function zigCommand() {
  const folder = cachePath(`zig-${ZIG}`);
  const program = join(folder, 'ziglang', 'zig');
  if (!existsSync(program)) {
    const made = `${folder}.${process.pid}`;
    rmSync(made, { recursive: true, force: true });
    const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--target', made];
    const started = announce(`Installing zig ${ZIG} into ${folder}`);
    await run('python3', [...args, `ziglang==${ZIG}`], {
      onFailure: `pip could not install ziglang ${ZIG}. Python 3 with pip is needed (Debian: apt-get install python3-pip).`,
    });
    if (!existsSync(program)) renameSync(made, folder);
    done(started);
  }
  const { status, stderr } = spawnSync(program, ['version'], { encoding: 'utf8' });
  if (status !== 0) fail(`${program} does not run: ${stderr}`);
  return program;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const words = process.argv.slice(2);
  const unknown = words.filter((word) => word !== '--list' && !(word in TARGETS));
  if (unknown.length > 0)
    fail(`${unknown.join(' ')}: expected --list or names of targets: ${PREBUILD_TARGETS.join(', ')}.`);
  if (words.includes('--list')) writeList();
  else await prebuild(words.length === 0 ? PREBUILD_TARGETS : words);
  const { binaries } = readList();
  for (const [target, { bytes, glibc }] of Object.entries(binaries))
    process.stdout.write(
      `${target.padEnd(16)} ${(bytes / 1e6).toFixed(2)} MB${glibc === undefined ? '' : `, needs glibc ${glibc}`}\n`,
    );
}
