// The long tests (*.long.test.ts): killed commands, failing disks, whole walks; and the tests with random inputs with many runs.
import { readFileSync } from 'node:fs';
import { setup } from '../setup.mjs';
import { runTests, testFiles } from '../test-files.mjs';

process.env.TRAWL_TEST_RUNS = 'many';
await setup();
const isPeer = (file) => file.endsWith('.peer.test.js');
const isLong = (file) => file.endsWith('.long.test.js') || /helpers\/runs\.js['"]/.test(readFileSync(file, 'utf8'));
const files = testFiles(process.argv.slice(2), (file) => isLong(file) && !isPeer(file));
// The soak test measures the memory of a server under load, so it has the machine for itself.
const isSoak = (file) => file.endsWith('soak.long.test.js');
await runTests(files.filter((file) => !isSoak(file)));
await runTests(files.filter(isSoak), { concurrency: 1 });
