// npm test on the oldest supported Node.js 22, on the newest 22 and on 26, which come from the npm registry into the cache folder.
// `22.15 26` chooses versions, and other words choose test files as in npm test: `npm run check -- nodes 26 http corpus`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { cachePath } from '../cached-packages.mjs';
import { fail, root, runNpm } from '../steps.mjs';

const DEFAULT = ['22.15.0', '22', '26'];
const words = process.argv.slice(2);
const versions = words.filter((word) => /^\d+(\.\d+)*$/.test(word));
const files = words.filter((word) => !versions.includes(word));
const name = `node-${process.platform}-${process.arch}`;
const results = [];
for (const version of versions.length === 0 ? DEFAULT : versions) {
  const node = await install(version);
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  if (!stdout) fail(`${node} does not run.`);
  process.stdout.write(`\n== Node.js ${stdout}`);
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const { status } = spawnSync(node, [join(root, 'scripts', 'test.mjs'), ...files], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  results.push([stdout.trim(), status === 0]);
}
for (const [version, passed] of results) process.stdout.write(`${version}: ${passed ? 'passed' : 'FAILED'}\n`);
process.exitCode = results.every(([, passed]) => passed) ? 0 : 1;

/** The program of a version, such as 22 (its newest) or 22.15.0. */
async function install(version) {
  const folder = cachePath(join('nodes', version));
  const program = join(folder, 'node_modules', name, 'bin', 'node');
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    await runNpm(['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`], {
      cwd: folder,
      onFailure: `npm could not install ${name}@${version} from the npm registry.`,
    });
  }
  return program;
}
