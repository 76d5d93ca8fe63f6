// `npm run check -- NAME`: one of the checks that take too long, or need too much, for `npm test`: scripts/checks/NAME.mjs. The words
// after the name go to it. Without a name: lists them with the first line of each, and scripts/checks/NAME.mjs says more.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, root } from './steps.mjs';

const folder = join(root, 'scripts', 'checks');
const names = readdirSync(folder).flatMap((file) => (file.endsWith('.mjs') ? [file.slice(0, -'.mjs'.length)] : []));
// The check then finds its own words where it would if it had been started directly.
const [name] = process.argv.splice(2, 1);
if (name === undefined) {
  for (const each of names.sort()) {
    const [line] = readFileSync(join(folder, `${each}.mjs`), 'utf8').split('\n');
    process.stdout.write(`${each.padEnd(10)} ${line.replace(/^\/\/ /, '')}\n`);
  }
} else if (names.includes(name)) await import(`./checks/${name}.mjs`);
else fail(`There is no check ${name}: expected one of ${names.sort().join(', ')}.`);
