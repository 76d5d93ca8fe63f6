import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../../src/base/package-root.ts';
import { type Ended, endOf } from '../cli/run-trawl.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { writeNewNode, writeProgram } from './old-nodes.ts';

const scripts = (name: string) => import(pathToFileURL(join(packageRoot, 'scripts', name)).href);
export const { BUILD_TOOLS } = (await scripts('build-tools.mjs')) as { BUILD_TOOLS: string };
const { cachePath } = (await scripts('cached-packages.mjs')) as { cachePath(name: string): string };
/** The compiler and the bundler that the set-up of this checkout has installed. */
const toolsFolder = cachePath(BUILD_TOOLS);

const { include: SOURCE_FOLDERS } = JSON.parse(readFileSync(join(packageRoot, 'tsconfig.json'), 'utf8')) as {
  include: readonly string[];
};

/** The files that the set-up needs, besides the sources. */
const PARTS = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'bin',
  'scripts',
  'native/Makefile',
  'native/addon',
  'native/generated',
  'native/include',
  'native/src',
  // Copied because compiling the engine takes most of a minute.
  'native/build/addon/trawl.node',
  'native/build/.trawl-native',
];
/** Without the tests, compiling is faster. */
const PROGRAM = SOURCE_FOLDERS.filter((folder) => folder !== 'test');

export interface Checkout {
  readonly root: string;
  /** The arguments of each call of npm, and the version of `node` on its PATH. */
  readonly npmCalls: () => string[];
}

/**
 * A copy of this repository with links to the installed packages and a fake npm that records its calls. With `stub`, it has five
 * source files in place of Trawl's, which compile in a second.
 */
export async function checkout(t: TestContext, { stub = false } = {}): Promise<Checkout> {
  const root = join(await tempFolder(t), 'checkout');
  if (stub) writeStub(root);
  for (const part of stub ? PARTS : [...PARTS, ...PROGRAM])
    cpSync(join(packageRoot, part), join(root, part), { recursive: true, dereference: true });
  symlinkSync(join(packageRoot, 'models'), join(root, 'models'));
  // The fake npm links every package to the installed one. Without development packages it leaves out `fast-check`.
  writeProgram(
    join(root, 'tools', 'npm'),
    `echo "$* on $(node --version)" >> "${root}/npm-calls"
if [ -e "${root}/npm-fails" ]; then echo "npm error the registry is away" >&2; exit 1; fi
if [ -e "${root}/npm-slow" ]; then sleep 1; fi
if [ "$1" = install ] && [ -e "${root}/npm-adds-nothing" ]; then exit; fi
case "$3" in
  */build-tools-*) ln -s "${toolsFolder}/node_modules" "$3/"; exit ;;
  */node-*) mkdir -p "$3/node_modules/.bin"; cp "${root}/tools/new-node" "$3/node_modules/.bin/node"; exit ;;
esac
[ "$1" = install ] || rm -rf "${root}/node_modules"
mkdir -p "${root}/node_modules"
ln -sf "${packageRoot}"/node_modules/* "${root}/node_modules/"
cp "${packageRoot}/node_modules/.package-lock.json" "${root}/node_modules/"
if [ "$2" = --omit=dev ]; then
  rm "${root}/node_modules/fast-check"
  sed '/"node_modules\\/fast-check"/,/^    }/d' "${packageRoot}/node_modules/.package-lock.json" > "${root}/node_modules/.package-lock.json"
fi`,
  );
  writeNewNode(join(root, 'tools', 'new-node'));
  const calls = join(root, 'npm-calls');
  return { root, npmCalls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []) };
}

function writeStub(root: string): void {
  for (const folder of ['cli/program', 'src/client']) mkdirSync(join(root, folder), { recursive: true });
  for (const file of ['name', 'index', 'client/index'])
    writeFileSync(join(root, 'src', `${file}.ts`), "export const name = 'trawl';\n");
  writeFileSync(
    join(root, 'cli', 'program', 'main.ts'),
    "import { name } from '../../src/name.ts';\nprocess.stdout.write(name);\n",
  );
  writeFileSync(join(root, 'cli', 'trawl.ts'), "import './program/main.ts';\n");
}

/** Starts a script of the checkout like `npm run`, by default with the Node.js that runs the tests. */
export function start(
  root: string,
  script: string,
  args: readonly string[] = [],
  { path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`, env = {} }: StartOptions = {},
): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|TRAWL_)/i.test(name));
  return spawn('sh', ['scripts/run', `scripts/${script}`, ...args], {
    cwd: root,
    env: { ...Object.fromEntries(inherited), PATH: `${join(root, 'tools')}${delimiter}${path}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

export interface StartOptions {
  readonly path?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export function run(...args: Parameters<typeof start>): Promise<Ended> {
  return endOf(start(...args));
}
