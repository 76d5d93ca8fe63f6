import { formatBytes, formatCount } from '../../src/base/format.ts';
import { isLoopback } from '../../src/server/access/access.ts';
import type { ListenAddress } from '../../src/server/connections/listen.ts';
import type { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import type { Perturbation } from '../../training/perturbation/perturbation.ts';
import { settingsText } from '../../training/perturbation/settings.ts';
import { lines } from '../output/lines.ts';
import type { ServeSettings } from './serve-settings.ts';

/** The line that `--json` prints when the server is ready, for scripts that wait for it. */
export function startFacts(
  url: string,
  { holder, listeners }: { readonly holder: IndexRegistry; readonly listeners: readonly Perturbed[] },
): object {
  const perturbed = listeners[0]?.perturbation ?? null;
  const indexes = holder.slots.map((slot) => {
    const { index, rows, deletedRows, dimension, metric, generation, gpu, ...info } = slot.retriever!.info;
    const [model, reranker] = [info.model?.name ?? null, info.reranker?.name ?? null];
    return { index, rows, deletedRows, dimension, metric, generation, model, reranker, gpu };
  });
  return {
    url,
    pid: process.pid,
    ...indexes[0],
    indexes: indexes.length === 1 ? undefined : indexes,
    perturbation: perturbed?.settings,
  };
}

/** An address that may perturb its answers. */
interface Perturbed {
  readonly perturbation: Perturbation | null;
  readonly address: ListenAddress;
}

/** One line for each address that perturbs its answers. */
export function perturbationNotes(listeners: readonly Perturbed[]): string[] {
  const notes = listeners.map(
    ({ perturbation, address: { host, port } }) =>
      perturbation !== null &&
      `answers of ${host}:${port} are perturbed on purpose: ${settingsText(perturbation.settings)}`,
  );
  return lines(...notes);
}

/** The lines that the server prints for a person when it is ready. */
export function banner(url: string, { slots }: IndexRegistry, keys: boolean): string[] {
  const key = keys ? " -H 'authorization: Bearer KEY'" : '';
  const curl = `curl -s ${url}/retrieve${key} -H 'content-type: application/json' -d '{"queries": ["who designed the Eiffel Tower"], "topk": 3, "return_scores": true}'`;
  const names = slots.map(({ retriever }) => {
    const { index, rows, deletedRows, model, reranker, gpu } = retriever!.info;
    const facts = lines(
      `${formatCount(rows - deletedRows)} passages`,
      model?.name ?? 'BM25',
      gpu !== undefined && !gpu.failed && `searched on ${gpu.name}, ${formatBytes(gpu.bytes)}`,
      reranker !== null && `reranker ${reranker.name}`,
    );
    return `${index} (${facts.join(', ')})`;
  });
  const views = slots.flatMap(({ name, retriever }) => {
    const { rows, deletedRows, views: known } = retriever!.info;
    return known.map(({ name: view, passages }) => {
      const hidden = formatCount(rows - deletedRows - passages);
      return `  view          ${view} of ${name} (${formatCount(passages)} passages, ${hidden} hidden)`;
    });
  });
  return [
    '',
    `Serving ${names.length === 0 ? 'no index yet' : names.join(', ')} on ${url}`,
    '',
    `  search page   ${url}/`,
    `  try it        ${curl}`,
    ...views,
    '  stop          Ctrl-C',
    '',
  ];
}

/** Warnings about listening on addresses that other machines can reach. */
export function exposureNotes(
  listeners: readonly Perturbed[],
  { keys, tls }: Pick<ServeSettings, 'keys' | 'tls'>,
): string[] {
  if (keys !== null && tls !== null) return [];
  const problem =
    keys === null
      ? 'without keys: every client that reaches the port can search. Set keys with --keys-file.'
      : 'without TLS: keys and queries can be read on the network. Use --tls-cert and --tls-key.';
  const hosts = new Set(listeners.map(({ address }) => address.host));
  return [...hosts]
    .filter((host) => host !== 'localhost' && !isLoopback(host))
    .map((host) => (host === '0.0.0.0' || host === '::' ? 'every network of this machine' : host))
    .map((where) => `listening on ${where} ${problem}`);
}
