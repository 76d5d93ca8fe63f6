// `npm run sbom`: writes trawl-retrieval-VERSION.cdx.json, the list of all parts that an installation has (CycloneDX), or into another
// folder: `npm run sbom -- --out DIR`. npm sbom lists the packages of the lock file; of these stay those that an installation has, and
// what the compiler adds to the prebuilt binaries comes on top.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { installedPackages } from './installed-packages.mjs';
import { ZIG } from './prebuild.mjs';
import { fail, root, setup } from './setup.mjs';

const { values } = parseArgs({ options: { out: { type: 'string', default: '.' } } });
await setup();
const bom = listOfNpm();
const packages = Object.entries(installedPackages());
const has = new Set(packages.map(([path, { version }]) => `${path.replace(/.*node_modules\//, '')}@${version}`));
const own = bom.metadata.component['bom-ref'];
const runtime = runtimeOfCompiler();
bom.components = bom.components.filter((component) => has.has(component['bom-ref']));
const missing = [...has].filter((ref) => bom.components.every((component) => component['bom-ref'] !== ref));
if (missing.length > 0) fail(`npm sbom does not list ${missing.join(', ')}, which an installation has.`);
bom.components.push(runtime);
bom.dependencies = [
  ...bom.dependencies
    .filter(({ ref }) => ref === own || has.has(ref))
    .map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: [...dependsOn.filter((other) => has.has(other)), ...(ref === own ? [runtime['bom-ref']] : [])],
    })),
  { ref: runtime['bom-ref'], dependsOn: [] },
];
const file = join(resolve(values.out), `trawl-retrieval-${bom.metadata.component.version}.cdx.json`);
mkdirSync(resolve(values.out), { recursive: true });
writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`);
process.stdout.write(`${file}  ${bom.components.length} parts\n`);

/** Every package of the lock file: with `--omit dev`, npm also leaves out packages that the checkout and an installation need. */
function listOfNpm() {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  const { status, stdout, stderr } = spawnSync('npm', [...args, '--include', 'dev'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) fail(`npm sbom failed.\n${stderr}`);
  return JSON.parse(stdout);
}

/** What the prebuilt binaries contain besides Trawl's own code: the runtime library of C++ that zig brings. */
function runtimeOfCompiler() {
  return {
    'bom-ref': `zig-libcxx@${ZIG}`,
    type: 'library',
    name: 'libc++, libc++abi, libunwind and compiler-rt of zig',
    version: ZIG,
    scope: 'required',
    description: 'Linked into prebuilds/*/trawl.node.',
    licenses: [{ expression: 'Apache-2.0 WITH LLVM-exception' }],
    purl: `pkg:pypi/ziglang@${ZIG}`,
  };
}
