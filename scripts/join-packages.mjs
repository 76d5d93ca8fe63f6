// Joins the modules of a package into one file for the separate files of dist/, which the tests run: typebox has 700 small modules,
// and to find them takes a process a quarter of a second. Called by the set-up after the bundle is made; plain JavaScript like it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { buildTools } from './build-tools.mjs';
import { filesBelow, root } from './steps.mjs';

/** The files by what is imported. */
const JOINED = { typebox: 'typebox', 'typebox/schema': 'typebox-schema', 'typebox/value': 'typebox-value' };
const IMPORT = /( from |^import )'(typebox(?:\/\w+)?)';/gm;

/** Writes `packages/` into the folder of compiled sources, and makes its files import from there. */
export async function joinPackages(compiled) {
  const places = Object.fromEntries(
    Object.entries(JOINED).map(([name, file]) => [name, join(compiled, 'packages', `${file}.js`)]),
  );
  const bundle = join(compiled, 'bundle', sep);
  const users = filesBelow(compiled, '.js')
    .filter((file) => !file.startsWith(bundle))
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }))
    .filter(({ text }) => text.search(IMPORT) >= 0);
  if (users.length === 0) return;
  const { build } = await buildTools();
  mkdirSync(join(compiled, 'packages'));
  await build({
    entryPoints: Object.entries(JOINED).map(([name, out]) => ({ in: name, out })),
    outdir: join(compiled, 'packages'),
    chunkNames: 'shared-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    absWorkingDir: root,
    keepNames: true,
    legalComments: 'none',
    logLevel: 'error',
  });
  for (const { file, text } of users) {
    const changed = text.replace(IMPORT, (_, before, name) => {
      const place = places[name];
      if (place === undefined)
        throw new Error(`${file} imports ${name}. Add it to JOINED in scripts/join-packages.mjs.`);
      const path = relative(dirname(file), place).split(sep).join('/');
      return `${before}'${path.startsWith('.') ? path : `./${path}`}';`;
    });
    writeFileSync(file, changed);
  }
}
