import { existsSync, statSync } from 'node:fs';
import { TrawlError } from '../../src/base/errors.ts';
import { optionOf } from '../../src/base/options/option-spec.ts';
import { optionValue } from '../../src/base/options/option-value.ts';
import { suggestOption } from '../../src/base/options/suggest-option.ts';
import { shownPlace } from '../../src/stores/published/shown-place.ts';
import { SYSTEM_OPTIONS, type SystemOptions, UNUSED_OPTIONS } from './system-options.ts';

/** What `trawl eval` searches: an index directory, a TREC run, or a server. */
export interface SystemSpec {
  readonly name: string;
  readonly kind: 'index' | 'run' | 'server';
  /** Path or URL. */
  readonly place: string;
  /** The options of the command line, replaced by its own. */
  readonly options: SystemOptions;
  /** Options that the command line or the system sets. */
  readonly given: ReadonlySet<string>;
  /** Options that the system sets. */
  readonly own: ReadonlySet<string>;
}

/** Why a kind of system does not use an option. */
const WHY_UNUSED: Readonly<Record<SystemSpec['kind'], string>> = {
  index: 'an index, which is not asked over HTTP',
  run: 'a run file, which is not searched',
  server: 'a server, which has its own settings',
};

/**
 * Parses `[NAME=]PLACE[?option=value&…]`. The options are those of `SYSTEM_OPTIONS`, as they are written on the command line, with `&`,
 * `%` and so on as in URLs. Without PLACE it is that of `base`. Without NAME the text is the name.
 *
 * @throws TrawlError USAGE.
 */
export function parseSystem(
  text: string,
  base: { readonly place: string | undefined; readonly options: SystemOptions; readonly given: ReadonlySet<string> },
): SystemSpec {
  // A path that exists is meant, even with = or ? in it.
  const literal = existsSync(text);
  const [, given, rest] = (literal ? null : /^([^=?/\\:]+)=(.*)$/s.exec(text)) ?? [];
  const [, path, query] = literal ? [text, text] : /^([^?]*)(?:\?(.*))?$/s.exec(rest ?? text)!;
  const place = path === '' ? base.place : path;
  if (place === undefined || place === '')
    throw new TrawlError(
      'USAGE',
      `The system ${JSON.stringify(shownPlace(text))} names no index, run file or URL, and there is no first one.`,
    );
  const own = new Map(parseOptions(text, query ?? ''));
  const kind = kindOf(place);
  const useless = UNUSED_OPTIONS[kind].find((option) => own.has(option));
  if (useless !== undefined)
    throw new TrawlError(
      'USAGE',
      `${useless} of ${JSON.stringify(shownPlace(text))} has no effect: ${shownPlace(place)} is ${WHY_UNUSED[kind]}.`,
    );
  return {
    name: given ?? shownPlace(text),
    kind,
    place,
    options: { ...base.options, ...(Object.fromEntries(own) as Partial<SystemOptions>) },
    given: new Set([...base.given, ...own.keys()]),
    own: new Set(own.keys()),
  };
}

function* parseOptions(text: string, query: string): Generator<[string, unknown], void> {
  for (const part of query.split('&').filter((each) => each !== '')) {
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const spec = optionOf(SYSTEM_OPTIONS, name);
    if (spec === undefined) {
      const near = suggestOption(name, Object.keys(SYSTEM_OPTIONS));
      throw new TrawlError(
        'USAGE',
        `The system ${JSON.stringify(shownPlace(text))} has the unknown option ${JSON.stringify(name)}${near === undefined ? '' : `; did you mean ${near}?`} ` +
          'Expected PLACE?option=value&option=value with options that trawl eval has for a search, such as mode=bm25.',
      );
    }
    if (equals === -1)
      throw new TrawlError(
        'USAGE',
        `The option ${name} of the system ${JSON.stringify(text)} has no value: ${name}=VALUE.`,
      );
    yield [
      name,
      optionValue(spec, [decoded(text, part.slice(equals + 1))], 'USAGE', `${name} of ${JSON.stringify(text)}`),
    ];
  }
}

function decoded(text: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw new TrawlError(
      'USAGE',
      `The system ${JSON.stringify(shownPlace(text))} has ${JSON.stringify(value)}; write % as %25.`,
    );
  }
}

function kindOf(place: string): SystemSpec['kind'] {
  if (/^https?:\/\//.test(place)) return 'server';
  const isFile = statSync(place, { throwIfNoEntry: false })?.isFile() ?? false;
  return isFile ? 'run' : 'index';
}
