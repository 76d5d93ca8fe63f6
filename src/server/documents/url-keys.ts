import { titleForms } from '../../index/passages/title-forms.ts';

/** The URL itself and, by ASearcher's rule for wikis, with `index.php/X` as `index.php?title=X`. */
export function urlKeys(url: string): string[] {
  const byRule = url.replace('index.php/', 'index.php?title=');
  return byRule === url ? [url] : [url, byRule];
}

/** The title in a wiki's URL, or the text itself if it is not a URL; without and with the quotes of the published corpora. */
export function titleKeys(url: string): readonly string[] {
  const [, inUrl] = /^https?:\/\/[^?#]*?(?:\/wiki\/|\/index\.php(?:\/|\?(?:[^#]*&)?title=))([^?#&]+)/.exec(url) ?? [];
  if (inUrl === undefined && /^https?:\/\//.test(url)) return [];
  const title = inUrl === undefined ? url : decoded(inUrl).replaceAll('_', ' ');
  return titleForms(title);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
