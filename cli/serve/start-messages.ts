import { formatBytes, formatCount } from '../../src/base/format.ts';
import { isLoopback } from '../../src/server/access/access.ts';
import type { ListenAddress } from '../../src/server/connections/listen.ts';
import type { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import type { Perturbation } from '../../training/perturbation/perturbation.ts';
import { settingsText } from '../../training/perturbation/settings.ts';

/** The line that `--json` prints when the server is ready, for scripts that wait for it. */
export function startFacts(
  url: string,
  { holder, listeners }: { readonly holder: IndexRegistry; readonly listeners: readonly Perturbed[] },
): object {
  const perturbed = listeners[0]?.perturbation ?? null;
  const indexes = holder.slots.map((slot) => {
    const { index, rows, deletedRows, dimension, metric, generation, model, reranker, gpu } = slot.retriever!.info;
    return {
      index,
      rows,
      deletedRows,
      dimension,
      metric,
      generation,
      model: model?.name ?? null,
      reranker: reranker?.name ?? null,
      gpu,
    };
  });
  return {
    url,
    pid: process.pid,
    ...indexes[0],
    ...(indexes.length === 1 ? {} : { indexes }),
    ...(perturbed === null ? {} : { perturbation: perturbed.settings }),
  };
}

/** An address that may perturb its answers. */
interface Perturbed {
  readonly perturbation: Perturbation | null;
  readonly address: ListenAddress;
}

/** One line for each address that perturbs its answers. */
export function perturbationNotes(listeners: readonly Perturbed[]): string[] {
  return listeners.flatMap(({ perturbation, address: { host, port } }) =>
    perturbation === null
      ? []
      : [`answers of ${host}:${port} are perturbed on purpose: ${settingsText(perturbation.settings)}`],
  );
}

/** The lines that the server prints for a person when it is ready. */
export function banner(url: string, { slots }: IndexRegistry, keys: boolean): string[] {
  const key = keys ? " -H 'authorization: Bearer KEY'" : '';
  const curl = `curl -s ${url}/retrieve${key} -H 'content-type: application/json' -d '{"queries": ["who designed the Eiffel Tower"], "topk": 3, "return_scores": true}'`;
  const names = slots.map(({ retriever }) => {
    const { index, rows, deletedRows, model, reranker, gpu } = retriever!.info;
    const facts = [
      `${formatCount(rows - deletedRows)} passages`,
      model?.name ?? 'BM25',
      ...(gpu === undefined || gpu.failed ? [] : [`searched on ${gpu.name}, ${formatBytes(gpu.bytes)}`]),
      ...(reranker === null ? [] : [`reranker ${reranker.name}`]),
    ];
    return `${index} (${facts.join(', ')})`;
  });
  const views = slots.flatMap(({ name, retriever }) =>
    retriever!.info.views.map(
      (view) => `  view          ${view.name} of ${name} (${formatCount(view.passages)} passages)`,
    ),
  );
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

/** Warnings about listening on `host`; none for a loopback address. */
export function exposureNotes(
  host: string,
  { keys, tls }: { readonly keys: boolean; readonly tls: boolean },
): string[] {
  if (host === 'localhost' || isLoopback(host)) return [];
  const where = host === '0.0.0.0' || host === '::' ? 'every network of this machine' : host;
  if (!keys)
    return [
      `listening on ${where} without keys: every client that reaches the port can search. Set keys with --keys-file.`,
    ];
  return tls
    ? []
    : [`listening on ${where} without TLS: keys and queries can be read on the network. Use --tls-cert and --tls-key.`];
}
