import { once } from 'node:events';
import { freePort } from '../cli/free-port.ts';
import { endOf, spawnTrawl } from '../cli/run-trawl.ts';
import type { Addresses } from './dialect-requests.ts';

/** A server of an index, named `wiki`, with an address for each of some dialects. */
export interface ServedIndex extends Addresses {
  readonly url: string;
  /** Lines that it wrote to standard error. */
  log(): string;
  stop(): Promise<void>;
}

/** Starts `trawl serve`; resolves when it is ready. @param place a folder or an address. */
export async function serve(
  place: string,
  {
    dialects = [],
    hasCache = false,
    args = [],
    env = {},
  }: {
    readonly dialects?: readonly string[];
    /** Whether it keeps answers, as by default. */
    readonly hasCache?: boolean;
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<ServedIndex> {
  const ports = new Map<string, number>();
  for (const dialect of dialects) ports.set(dialect, await freePort());
  const listen = [...ports].flatMap(([dialect, port]) => ['--listen', `127.0.0.1:${port}=${dialect}`]);
  const cache = hasCache ? [] : ['--cache-bytes', '0'];
  const child = spawnTrawl(['serve', `wiki=${place}`, '--port', '0', '--json', ...cache, ...listen, ...args], { env });
  let log = '';
  child.stderr!.on('data', (text: string) => {
    log = `${log}${text}`.slice(-100_000);
  });
  const ended = endOf(child);
  const ready = once(child.stdout!, 'data').then(([line]) => (JSON.parse(String(line)) as { url: string }).url);
  const url = await Promise.race([
    ready,
    ended.then(({ code, stderr }) => Promise.reject(new Error(`trawl serve ended with ${code}: ${stderr}`))),
  ]);
  return {
    url,
    urlOf: (dialect) => (dialect === undefined ? url : `http://127.0.0.1:${ports.get(dialect)!}`),
    log: () => log,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
