// Bundles the command line, and the scripts of its threads and processes, into few files: a command then starts in two thirds of
// the time, because Node.js has 300 files to find instead of 1,400. Called by the set-up; plain JavaScript like it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { buildTools } from './build-tools.mjs';
import { filesBelow, root } from './steps.mjs';

/** Packages that become part of the bundle: those of many small modules. The others are imported from node_modules. */
const BUNDLED = ['typebox', 'hyparquet', 'hyparquet-writer'];

/** Writes `bundle/` into the folder of compiled sources. All its files are side by side, so that they find each other. */
export async function bundle(compiled) {
  const { build } = await buildTools();
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packages = Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !BUNDLED.includes(name));
  const { metafile } = await build({
    entryPoints: [join(compiled, 'cli', 'main.js'), ...startedFiles(compiled)],
    outdir: join(compiled, 'bundle'),
    entryNames: '[name]',
    chunkNames: '[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
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
  const names = files.map((file) => basename(file));
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new Error(`Two files that start a thread or a process are named ${twice}. Rename one.`);
  return files;
}

/** The packages of which the bundle has a copy. @throws Error if one is not in BUNDLED. */
function packagesIn({ inputs }) {
  const names = Object.keys(inputs).map((file) => /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  const found = [...new Set(names.filter((name) => name !== undefined))].sort();
  const other = found.find((name) => !BUNDLED.includes(name));
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
