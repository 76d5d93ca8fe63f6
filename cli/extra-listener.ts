import { TrawlError } from '../src/errors.ts';
import type { ListenAddress } from '../src/http/listen.ts';

/** A further address on which one dialect is preferred: its clients' port. */
export interface ExtraListener extends ListenAddress {
  readonly dialect: string;
}

const FORM = /^(?:(?:\[([^\]]+)\]|([^:=[\]]+)):)?(\d{1,5})=([a-z0-9-]+)$/;

/**
 * Reads `HOST:PORT=DIALECT` or `PORT=DIALECT`, the host being that of the main address then. Whether there is such a
 * dialect is for the server to say.
 *
 * @throws TrawlError USAGE.
 */
export function parseExtraListener(text: string, host: string): ExtraListener {
  const [, bracketed, plain, port, dialect] = FORM.exec(text) ?? [];
  if (port === undefined || dialect === undefined || Number(port) > 65_535) {
    throw new TrawlError(
      'USAGE',
      `--listen ${JSON.stringify(text)} is not understood; write HOST:PORT=DIALECT or PORT=DIALECT, as in --listen 6002=zerosearch.`,
    );
  }
  return { host: bracketed ?? plain ?? host, port: Number(port), dialect };
}
