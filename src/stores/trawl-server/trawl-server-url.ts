import { TrawlError } from '../../base/errors.ts';
import { parseServerUrl } from '../../encoder/model-server/server-url.ts';

/**
 * The URL of a Trawl server, without a slash at the end. Paths are appended to it, and it is written in messages, progress files and
 * reports, so it has no user, password, query or fragment.
 *
 * @throws TrawlError CONFIG_INVALID. The message does not repeat the URL, which may have a password.
 */
export function trawlServerUrl(text: string): string {
  parseServerUrl(text, { what: 'Trawl server', keyOption: '--key-file' });
  if (/[?#]/.test(text)) {
    throw new TrawlError(
      'CONFIG_INVALID',
      'The URL of the Trawl server has a query or fragment (? or #); expected http://HOST:PORT, or with /indexes/NAME. Pass a key with --key-file.',
    );
  }
  return text.replace(/\/+$/, '');
}
