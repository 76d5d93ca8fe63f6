// `npm run sbom`: writes trawl-retrieval-VERSION.cdx.json, the list of all parts that an installation has, as npm sbom makes it
// (CycloneDX), or into another folder: `npm run sbom -- --out DIR`. The prebuilt binaries contain zig's libc++ besides our sources.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, root } from './steps.mjs';

const { values } = parseArgs({ options: { out: { type: 'string', default: '.' } } });
const args = [
  'sbom',
  '--sbom-format',
  'cyclonedx',
  '--sbom-type',
  'application',
  '--omit',
  'dev',
  '--package-lock-only',
];
const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
if (status !== 0) fail(`npm sbom failed.\n${stderr}`);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const file = join(resolve(values.out), `trawl-retrieval-${version}.cdx.json`);
mkdirSync(resolve(values.out), { recursive: true });
writeFileSync(file, stdout);
process.stdout.write(`${file}  ${JSON.parse(stdout).components.length} parts\n`);
