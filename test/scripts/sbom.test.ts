import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { fileFolder } from '../cli/run-trawl.ts';

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly { readonly license?: { readonly id: string }; readonly expression?: string }[];
}

interface Bom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

interface Locked {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
}

const json = (...path: string[]): unknown => JSON.parse(readFileSync(join(packageRoot, ...path), 'utf8'));
const facts = json('package.json') as { version: string; dependencies: object; devDependencies: object };
const { packages } = json('package-lock.json') as { packages: Record<string, Locked> };
const folder = await fileFolder();
let bom: Bom;

before(() => {
  const script = join(packageRoot, 'scripts', 'sbom.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  bom = JSON.parse(readFileSync(join(folder, `trawl-retrieval-${facts.version}.cdx.json`), 'utf8')) as Bom;
});

/** The packages of npm, without the compiler's library. */
function npmPackages(): readonly Component[] {
  return bom.components.filter(({ purl }) => purl.startsWith('pkg:npm/'));
}

test('every part has the version, the checksum and the licence of package-lock.json', () => {
  assert.ok(npmPackages().length > 80, String(npmPackages().length));
  for (const { name, version, purl, hashes, licenses } of npmPackages()) {
    const [path, locked] =
      Object.entries(packages).find(
        ([path, each]) => path.endsWith(`node_modules/${name}`) && each.version === version,
      ) ?? assert.fail(`${name} ${version} is not in package-lock.json`);
    assert.notEqual(locked.dev, true, path);
    assert.equal(decodeURIComponent(purl), `pkg:npm/${name}@${version}`);
    const sha512 = Buffer.from(locked.integrity!.replace('sha512-', ''), 'base64').toString('hex');
    assert.deepEqual(hashes, [{ alg: 'SHA-512', content: sha512 }], path);
    assert.deepEqual(
      licenses!.map(({ license, expression }) => license?.id ?? expression),
      [locked.license],
      path,
    );
  }
});

test('the list has the packages that Trawl names, those in its bundle, and the library of C++ in its binaries', () => {
  const names = new Set(bom.components.map(({ name }) => name));
  for (const name of Object.keys(facts.dependencies)) assert.ok(names.has(name), name);
  // Of the packages that an installation does not ask npm for, some are needed by others of them alone.
  for (const name of ['zod', 'fzstd', 'd3-array', 'tdigest', '@opentelemetry/api']) assert.ok(names.has(name), name);
  const [runtime] = bom.components.filter(({ purl }) => purl.startsWith('pkg:pypi/ziglang@'));
  assert.match(readFileSync(join(packageRoot, 'scripts', 'prebuild.mjs'), 'utf8'), new RegExp(`'${runtime!.version}'`));
});

test('the list has nothing that an installation lacks: tools, install scripts of others, servers that the bundle leaves out', () => {
  const names = new Set(bom.components.map(({ name }) => name));
  const elsewhere = Object.keys(facts.devDependencies).filter((name) => name !== '@opentelemetry/api');
  for (const name of [...elsewhere, 'adm-zip', 'global-agent', 'express', 'hono', 'jose'])
    assert.ok(!names.has(name), name);
});

test('what needs what is said of listed parts alone', () => {
  const { 'bom-ref': own, version } = bom.metadata.component;
  assert.equal(version, facts.version);
  const refs = new Set([own, ...bom.components.map((component) => component['bom-ref'])]);
  assert.equal(refs.size, bom.components.length + 1);
  assert.deepEqual(new Set(bom.dependencies.map(({ ref }) => ref)), refs);
  const reached = new Set([own]);
  for (const ref of reached)
    for (const { ref: from, dependsOn } of bom.dependencies)
      if (from === ref) for (const other of dependsOn) reached.add(other);
  assert.deepEqual(reached, refs, 'every part is there for Trawl or for a part that is');
});
