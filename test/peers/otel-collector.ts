import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { installOnce, isInstalled } from '../../bench/install-once.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { freePort } from '../cli/free-port.ts';
import { peerCache } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const SOURCES = join(packageRoot, 'test', 'peers', 'otel-collector');
const START_MS = 20_000;
const SPANS_MS = 20_000;

function collectorFolder(): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(SOURCES).sort()) hash.update(readFileSync(join(SOURCES, name)));
  return join(peerCache(), `otel-collector-${hash.digest('hex').slice(0, 12)}`);
}

/** For the `skip` option of a test: false if the collector is there, else the reason. */
export function withoutCollector(): string | false {
  return isInstalled(collectorFolder())
    ? false
    : 'no OpenTelemetry Collector: npm run check -- peers traces compiles it where Go is installed (1.26 or newer)';
}

/**
 * Compiles the collector with Go, once; some minutes. Go's own caches are removed afterwards.
 *
 * @throws Error if Go or a module is missing.
 */
export async function installCollector(note: (text: string) => void): Promise<void> {
  const folder = collectorFolder();
  await installOnce(folder, { note }, async () => {
    note(`Compiling an OpenTelemetry Collector into ${folder} (once, some minutes)`);
    const work = await mkdtemp(join(tmpdir(), 'trawl-otel-'));
    try {
      const sources = join(work, 'sources');
      await cp(SOURCES, sources, { recursive: true });
      await promisify(execFile)('go', ['build', '-modcacherw', '-o', join(folder, 'otelcol'), '.'], {
        cwd: sources,
        env: {
          ...process.env,
          GOPATH: join(work, 'path'),
          GOCACHE: join(work, 'cache'),
          GOTOOLCHAIN: 'local',
          GOFLAGS: '',
        },
        maxBuffer: 2 ** 26,
      });
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

/** A span as the collector printed it. */
interface PrintedSpan {
  readonly traceId: string;
  readonly parentId: string;
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface RunningCollector {
  readonly url: string;
  /** Waits until a trace has a span of that name. Resolves to all its spans so far. */
  spansOf(traceId: string, name: string): Promise<PrintedSpan[]>;
}

/** Starts a collector, which is ended after the test. */
export async function startCollector(t: TestContext): Promise<RunningCollector> {
  const port = await freePort();
  const file = join(await tempFolder(t), 'collector.json');
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { debug: { verbosity: 'detailed' } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
    },
  };
  // JSON is YAML.
  await writeFile(file, JSON.stringify(config));
  const child = spawn(join(collectorFolder(), 'otelcol'), ['--config', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  t.after(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'close');
  });
  const until = async (limitMs: number, what: string, isThere: () => boolean): Promise<void> => {
    for (const end = Date.now() + limitMs; !isThere(); await sleep(50)) {
      if (Date.now() > end || child.exitCode !== null)
        throw new Error(`the collector: no ${what}: ${printed.slice(-2000)}`);
    }
  };
  await until(START_MS, 'start', () => printed.includes('Everything is ready'));
  return {
    url: `http://127.0.0.1:${port}`,
    async spansOf(traceId, name) {
      const own = (): PrintedSpan[] => printedSpans(printed).filter((span) => span.traceId === traceId);
      await until(SPANS_MS, `span ${name}`, () => own().some((span) => span.name === name));
      return own();
    },
  };
}

/** Reads the text of the exporter `debug`: `Span #0`, then a line `name : value` for each field, then the attributes. */
function printedSpans(text: string): PrintedSpan[] {
  return text
    .split(/^Span #\d+$/m)
    .slice(1)
    .map((span) => {
      const field = (name: string): string => new RegExp(`^ {4}${name} *: (.*)$`, 'm').exec(span)?.[1]?.trim() ?? '';
      return {
        traceId: field('Trace ID'),
        parentId: field('Parent ID'),
        id: field('ID'),
        name: field('Name'),
        kind: field('Kind'),
        attributes: Object.fromEntries(
          Array.from(span.matchAll(/^ {5}-> ([^:]+): \w+\((.*)\)$/gm), ([, name, value]) => [name!, value!]),
        ),
      };
    });
}
