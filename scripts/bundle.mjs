// Bundles the command line, the library, and the scripts of their threads and processes into few files: a command then starts in
// two thirds of the time, because Node.js has 300 files to find instead of 1,400, and an installation of the package asks the
// registry for a third of the packages. Called by the set-up; plain JavaScript like it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { buildTools, withNeeded } from './build-tools.mjs';
import { filesBelow, root } from './steps.mjs';

/**
 * Packages that become part of the bundle, with those that they need: whoever installs Trawl does not install them. The others are
 * imported from node_modules: those with binaries, with files that are read at run time, and with types of the public API.
 */
export const BUNDLED = [
  '@modelcontextprotocol/sdk',
  'cli-progress',
  'csv-parse',
  'd3-scale',
  'entities',
  'hyparquet',
  'hyparquet-compressors',
  'hyparquet-writer',
  'lru-cache',
  'pino-pretty',
  'prom-client',
];

/** Packages whose modules are copied into the bundle although they are installed too, because they have many small ones. */
const COPIED = ['typebox'];

/** The packages of which a bundle may have copies. */
const IN_BUNDLE = [...BUNDLED, ...COPIED];

/** Files of the bundle by what they are made from: the command line, and what `exports` in package.json names. */
const ENTRIES = { main: 'cli/program/main.js', library: 'src/index.js', client: 'src/client/index.js' };

/** CommonJS packages call `require`, which a module does not have. */
const REQUIRE = "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

/** Writes `bundle/` into the folder of compiled sources. All its files are side by side, so that they find each other. */
export async function bundle(compiled) {
  const { build } = await buildTools();
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  // An optional package that a bundled one needs (prom-client: @opentelemetry/api) is copied, because an installation lacks it.
  const needed = withNeeded(IN_BUNDLE);
  const packages = [
    ...Object.keys(dependencies).filter((name) => !IN_BUNDLE.includes(name)),
    ...Object.keys(devDependencies).filter((name) => !needed.has(name)),
  ];
  const { metafile } = await build({
    entryPoints: [
      ...Object.entries(ENTRIES).map(([out, path]) => ({ in: join(compiled, path), out })),
      ...startedFiles(compiled).map((file) => ({ in: file, out: basename(file, '.js') })),
    ],
    outdir: join(compiled, 'bundle'),
    chunkNames: '[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    banner: { js: REQUIRE },
    external: packages.flatMap((name) => [name, `${name}/*`]),
    // Paths in the bundle's comments are relative to this, so equal sources make equal files.
    absWorkingDir: compiled,
    metafile: true,
    // Names in stack traces stay those of the sources.
    keepNames: true,
    legalComments: 'none',
    logLevel: 'error',
  });
  writeFileSync(join(compiled, 'bundle', 'LICENSES.txt'), packagesIn(metafile).map(licence).join('\n\n'));
}

/** The files that a thread or a process starts with: each is named in `new URL('./NAME.js', import.meta.url)`. */
function startedFiles(compiled) {
  const program = filesBelow(compiled, '.js').filter((file) => !relative(compiled, file).startsWith('test/'));
  const started = program.flatMap((file) => {
    const uses = readFileSync(file, 'utf8').matchAll(/new URL\('(\.\/[^']+\.js)', import\.meta\.url\)/g);
    return [...uses].map(([, name]) => resolve(dirname(file), name));
  });
  const files = [...new Set(started)];
  const names = [...Object.keys(ENTRIES), ...files.map((file) => basename(file, '.js'))];
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`Two files of the bundle would be named ${twice}.js. Rename one.`);
  return files;
}

/** The packages of which the bundle has a copy. @throws Error if one of them is neither in IN_BUNDLE nor needed by one that is. */
function packagesIn({ inputs }) {
  const names = Object.keys(inputs).map((file) => /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  const found = [...new Set(names.filter((name) => name !== undefined))].sort();
  const expected = withNeeded(IN_BUNDLE);
  const other = found.find((name) => !expected.has(name));
  if (other !== undefined)
    throw new Error(`The bundle would have a copy of ${other}. Add it to BUNDLED in scripts/bundle.mjs.`);
  return found;
}

function licence(name) {
  const folder = join(root, 'node_modules', name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (file === undefined || !existsSync(join(folder, file))) throw new Error(`${name} ${version} has no licence file.`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8')}`;
}
