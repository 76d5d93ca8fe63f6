import { TrawlError } from '../src/errors.ts';
import type { ListenAddress } from '../src/http/listen.ts';
import type { ServerConfig } from '../src/http/server-config.ts';

/** A further address, for clients that have their port fixed. */
export interface ExtraListener extends ListenAddress {
  /** Whose clients they are; undefined for those of the main address. */
  readonly dialect: string | undefined;
  /** How long its requests wait, where that is another time than on the main address. */
  readonly waiting: Partial<Pick<ServerConfig, 'shedAfterMs' | 'deadlineMs'>>;
}

const FORM = /^(?:(?:\[([^\]]+)\]|([^:=[\]]+)):)?(\d{1,5})(?:=([a-z0-9-]+))?((?::[a-z-]+=\d{1,9})*)$/;
const WAITING: Readonly<Record<string, 'shedAfterMs' | 'deadlineMs'>> = {
  'shed-after-ms': 'shedAfterMs',
  'deadline-ms': 'deadlineMs',
};

/**
 * Reads `HOST:PORT=DIALECT`; without a host it is that of the main address, without a dialect those of the main address
 * are preferred. Whether there is such a dialect is for the server to say.
 *
 * @throws TrawlError USAGE.
 */
export function parseExtraListener(text: string, host: string): ExtraListener {
  const [, bracketed, plain, port, dialect, settings = ''] = FORM.exec(text) ?? [];
  const waiting = port === undefined ? undefined : readWaiting(settings);
  if (port === undefined || Number(port) > 65_535 || waiting === undefined) {
    throw new TrawlError(
      'USAGE',
      `--listen ${JSON.stringify(text)} is not understood; write [HOST:]PORT[=DIALECT], as in --listen 6002=zerosearch or --listen 5003, with :shed-after-ms=N or :deadline-ms=N behind it where wanted.`,
    );
  }
  return { host: bracketed ?? plain ?? host, port: Number(port), dialect, waiting };
}

function readWaiting(settings: string): ExtraListener['waiting'] | undefined {
  const waiting: Partial<Record<'shedAfterMs' | 'deadlineMs', number>> = {};
  for (const setting of settings.split(':').slice(1)) {
    const [name = '', value] = setting.split('=');
    const field = Object.hasOwn(WAITING, name) ? WAITING[name] : undefined;
    if (field === undefined) return undefined;
    waiting[field] = Number(value);
  }
  return waiting;
}
