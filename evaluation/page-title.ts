/**
 * The key by which titles of pages are compared: without regard to case, and to spaces or underscores, since some sets write
 * `Ed_Wood_(film)`; with `&amp;` read as `&`, as in titles of HotpotQA; and without the quotes around each title of the published
 * corpora (`titleForms` of src/index/passages/). Titles that differ in accents are different pages. An empty key is no page.
 */
export function titleKey(title: string): string {
  return title
    .replaceAll('&amp;', '&')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .normalize('NFC')
    .replace(/[\s_]+/gu, ' ')
    .trim()
    .replace(/^"(.*)"$/u, '$1')
    .trim()
    .toLowerCase();
}
