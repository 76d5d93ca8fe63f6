// `npm run demo`: sets up the checkout and runs `trawl demo` over indexes/sample.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, root, setup } from './setup.mjs';

const HELP = `Usage: npm run demo -- [--port N] [--host ADDRESS]

Installs packages, compiles, builds the index of the sample corpus and serves it.

  --port N         port to listen on (default 8000)
  --host ADDRESS   address to listen on (default 127.0.0.1: this machine only)`;

const { values } = readArguments();
if (values.help) {
  process.stdout.write(`${HELP}\n`);
} else {
  await portIsFree(values.port, values.host);
  await setup({ development: false });
  const { main } = await import('../dist/cli/program/main.js');
  const out = join(root, 'indexes', 'sample');
  process.exitCode = await main(['demo', '--out', out, '--port', values.port, '--host', values.host]);
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
