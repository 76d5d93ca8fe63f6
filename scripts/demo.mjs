// `npm run demo`: sets up the checkout, builds the index of the sample corpus and serves it with a search page.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, root, setup } from './setup.mjs';

const HELP = `Usage: npm run demo -- [--port N] [--host ADDRESS]

Installs packages, compiles, builds the index of the sample corpus and serves it.

  --port N         port to listen on (default 8000)
  --host ADDRESS   address to listen on (default 127.0.0.1: this machine only)`;

const NEXT = `Questions to try are in corpus/sample/questions.jsonl. An index of your own passages:
  npx trawl index FILE.jsonl --out indexes/mine
  npx trawl serve indexes/mine`;

const { values } = readArguments();
if (values.help) {
  process.stdout.write(`${HELP}\n`);
} else {
  await portIsFree(values.port, values.host);
  await setup();
  const { main } = await import('../dist/cli/main.js');
  const index = join(root, 'indexes', 'sample');
  const built = await main(['index', join(root, 'corpus', 'sample', 'passages.jsonl'), '--out', index, '--if-changed']);
  if (built === 0) process.stderr.write(`\n${NEXT}\n\n`);
  process.exitCode = built === 0 ? await main(['serve', index, '--port', values.port, '--host', values.host]) : built;
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        port: { type: 'string', default: '8000' },
        host: { type: 'string', default: '127.0.0.1' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail(`${error.message}\n\n${HELP}`);
  }
}

/** Fails if the port is not free, before the set-up and the build. */
function portIsFree(text, host) {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65535)
    fail(`--port is ${JSON.stringify(text)}; expected a whole number from 0 to 65535.`);
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error) => {
      fail(
        error.code === 'EADDRINUSE'
          ? `Port ${port} of ${host} is in use by another program. Stop it, or choose another port: npm run demo -- --port ${port === 8123 ? 8124 : 8123}`
          : `Cannot listen on ${host}:${port}: ${error.message}`,
      );
    });
    probe.listen(port, host, () => probe.close(resolve));
  });
}
