import type { IndexDefinition } from '../../../index/document-store/index-definition.ts';
import { type ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode, ObjectNode } from '../json-nodes.ts';

type Settings = IndexDefinition['settings'];

export const DEFAULT_SETTINGS: Settings = { shards: 1, replicas: 1, refreshMs: 1_000 };

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Timers cannot wait longer. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;

/**
 * Reads settings, as `number_of_shards`, `index.number_of_shards` or `{index: {number_of_shards}}`. Shards and replicas are only
 * remembered: the documents of an index are one shard.
 *
 * @param current what settings that are not given keep.
 * @param isNew false for an index that exists, whose shards cannot change.
 * @throws ElasticsearchError illegal_argument_exception.
 */
export function readSettings(node: ObjectNode | undefined, current: Settings, isNew: boolean): Settings {
  let settings = current;
  for (const [name, value] of flat(node, '')) {
    const key = name.startsWith('index.') ? name.slice('index.'.length) : name;
    if (key === 'number_of_shards' && isNew) settings = { ...settings, shards: countOf(name, value, 1) };
    else if (key === 'number_of_replicas') settings = { ...settings, replicas: countOf(name, value, 0) };
    else if (key === 'refresh_interval') settings = { ...settings, ...intervalOf(value) };
    else if (key === 'number_of_shards') {
      throw illegalArgument(`final index setting [index.${key}], not updateable`);
    } else {
      throw illegalArgument(
        `unknown setting [index.${key.slice(0, 100)}]: this server knows number_of_shards, number_of_replicas and refresh_interval`,
      );
    }
  }
  return settings;
}

/** The settings as Elasticsearch shows them: every value is a text. */
export function settingsJson({ name, uuid, createdAt, settings }: IndexDefinition): object {
  const { shards, replicas, refreshInterval } = settings;
  return {
    index: {
      refresh_interval: refreshInterval,
      number_of_shards: String(shards),
      provided_name: name,
      creation_date: String(createdAt),
      number_of_replicas: String(replicas),
      uuid,
    },
  };
}

function flat(node: ObjectNode | undefined, prefix: string): [string, JsonNode][] {
  return [...(node?.members ?? [])].flatMap(([name, value]): [string, JsonNode][] =>
    value.type === 'object' ? flat(value, `${prefix}${name}.`) : [[`${prefix}${name}`, value]],
  );
}

function countOf(name: string, node: JsonNode, least: number): number {
  const text = textOf(node);
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= 1_024) return value;
  throw wrong(name, text, `a whole number from ${least} to 1024`);
}

function intervalOf(node: JsonNode): Pick<Settings, 'refreshMs' | 'refreshInterval'> {
  // Null asks for the default.
  if (node.type === 'null') return { refreshMs: DEFAULT_SETTINGS.refreshMs };
  const refreshInterval = textOf(node);
  if (refreshInterval === '-1') return { refreshMs: -1, refreshInterval };
  const [, number, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(refreshInterval) ?? [];
  const refreshMs = Number(number) * (UNITS[unit ?? ''] ?? Number.NaN);
  if (refreshMs <= MAX_INTERVAL_MS) return { refreshMs, refreshInterval };
  throw wrong('refresh_interval', refreshInterval, '-1 or a time such as 30s, at most 24 days');
}

function textOf(node: JsonNode): string {
  if (node.type === 'string') return node.value;
  if (node.type === 'number') return node.text;
  return node.type === 'boolean' ? String(node.value) : '';
}

function wrong(name: string, text: string, expected: string): ElasticsearchError {
  return illegalArgument(
    `Failed to parse value [${text.slice(0, 100)}] for setting [${name.slice(0, 100)}]; expected ${expected}`,
  );
}
