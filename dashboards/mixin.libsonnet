// The dashboards, the recording rules and the alerts as a monitoring mixin: https://monitoring.mixins.dev. With the
// default configuration they are the files next to this one.
//
//   local windowstat = (import 'github.com/windowstat/windowstat/dashboards/mixin.libsonnet') + {
//     _config+:: { selector: 'job=~"shop.*"', objectives: [{ resource: 'checkout', threshold: '250ms', share: 0.999 }] },
//   };
//   { 'alerts.json': windowstat.prometheusAlerts }
{
  _config+:: {
    // Matchers of all metrics of windowstat, such as 'job=~"shop.*"'. Rules keep the labels job and the cluster label only.
    selector: '',
    // The label that rules aggregate by in addition to job. Without it, clusters with a job of the same name are added up.
    // The variable Cluster of the dashboards selects by it, or by the label cluster if it is empty.
    clusterLabel: '',
    // The seconds between two scrapes, at most 60. Rules on single seconds look back by ten seconds more, and the dashboards
    // end as long ago.
    scrapeInterval: 20,
    // The prefix of metrics, as in Options.Namespace. Recording rules have it, too.
    namespace: 'windowstat',
    // Where the alerts' runbook_url leads, before the name of the alert.
    runbookBase: 'https://github.com/windowstat/windowstat/blob/main/dashboards/runbook.md#',
    // The text before the titles of the dashboards, such as 'Shop / ', and their tags.
    dashboardPrefix: '',
    dashboardTags: ['windowstat'],

    // The share of calls without an error, of each resource without an objective of its own.
    defaultErrorObjective: 0.999,
    // Of single resources: { checkout: 0.9995 }.
    errorObjectives: {},
    // The share of calls that are no slower than the threshold, of each resource without an objective of its own. Thresholds are
    // those of the rules job_resource_threshold:windowstat_rt_slow:rate5m.
    defaultObjective: { threshold: '1s', share: 0.99 },
    // Of single resources: { resource, threshold, share }.
    objectives: [],
    // The most calls in one second, by resource, of all targets together: { checkout: 400 }.
    callsInOneSecond: {},
  },

  local config = $._config,
  assert config.scrapeInterval > 0 && config.scrapeInterval <= 60 : 'scrapeInterval is not a number of seconds up to 60',

  // matching adds the selector to the metrics of windowstat in an expression. A name before or after a colon belongs to a
  // recording rule. In the text of a dashboard, all selectors have braces; other names are prose.
  local matching(text, selector, braces) =
    local parts = std.split(text, 'windowstat_');
    local matched(part) =
      local head = std.substr(part, 0, 80);
      local length = std.length(head) - std.length(std.lstripChars(head, 'abcdefghijklmnopqrstuvwxyz_'));
      local name = std.substr(part, 0, length), rest = std.substr(part, length, std.length(part));
      if std.startsWith(rest, '{') then name + '{' + selector + ',' + std.substr(rest, 1, std.length(rest))
      else if braces || std.startsWith(rest, ':') then part
      else name + '{' + selector + '}' + rest;
    if selector == '' then text
    else parts[0] + std.join('', [
      'windowstat_' + if std.endsWith(parts[i - 1], ':') then parts[i] else matched(parts[i])
      for i in std.range(1, std.length(parts) - 1)
    ]),

  local replaced(text, pairs) = std.foldl(function(t, pair) std.strReplace(t, pair[0], pair[1]), pairs, text),
  local renamed(text) = std.strReplace(text, 'windowstat_', config.namespace + '_'),

  // expression configures an expression of a rule. Lists of labels with a target contain job or instance first; those of
  // objectives do not, because an objective holds in all clusters.
  local expression(text) = renamed(replaced(
    matching(text, config.selector, false),
    // Both old offsets are replaced before a new one can be equal to them.
    [['offset 30s', 'offset A'], ['offset 40s', 'offset B']] +
    [['offset A', 'offset %ds' % (config.scrapeInterval + 10)], ['offset B', 'offset %ds' % (config.scrapeInterval + 20)]] +
    if config.clusterLabel == '' then [] else [
      [list, std.substr(list, 0, std.length(list) - std.length(first)) + config.clusterLabel + ', ' + first]
      for first in ['job', 'instance']
      for list in ['by (' + first, 'on (' + first]
    ]
  )),

  // groups configures the groups of a file of rules.
  local groups(text) = [
    group { rules: [
      rule { expr: expression(rule.expr) } +
      (if 'record' in rule then { record: renamed(rule.record) } else {}) +
      (if 'alert' in rule then { annotations+: { runbook_url: config.runbookBase + rule.alert } } else {})
      for rule in std.flatMap(objectives, group.rules)
    ] }
    for group in std.parseYaml(text).groups
  ],

  // objectives replaces the rule of a default by the configured objectives and limits.
  local objectives(rule) =
    local constant(name, labels, value) =
      { record: name, expr: 'vector(%.10g)' % value } + if labels == {} then {} else { labels: labels };
    if std.get(rule, 'record', '') == 'windowstat_latency:default_objective' then
      [constant(rule.record, { threshold: config.defaultObjective.threshold }, config.defaultObjective.share)] +
      [
        constant('resource:windowstat_latency:objective', { resource: o.resource, threshold: o.threshold }, o.share)
        for o in config.objectives
      ] +
      [
        constant('resource:windowstat_calls_in_one_second:limit', { resource: name }, config.callsInOneSecond[name])
        for name in std.objectFields(config.callsInOneSecond)
      ]
    else if std.get(rule, 'record', '') == 'windowstat_errors:default_objective' then
      [constant(rule.record, {}, config.defaultErrorObjective)] +
      [
        constant('resource:windowstat_errors:objective', { resource: name }, config.errorObjectives[name])
        for name in std.objectFields(config.errorObjectives)
      ]
    else [rule],

  // dashboard configures the text of a dashboard. The selector does not apply to alerts and recorded metrics.
  local dashboard(text) =
    local selector = std.strReplace(config.selector, '"', '\\"');
    local changed = replaced(matching(text, selector, true), [
      ['now-20s', 'now-%ds' % config.scrapeInterval],
      ['Ends 20 seconds ago', 'Ends %d seconds ago' % config.scrapeInterval],
    ] + (if selector == '' then [] else [
      ['{__name__=~\\"windowstat_', '{' + selector + ',__name__=~\\"windowstat_'],
    ]) + (if config.clusterLabel == '' then [] else [
      ['cluster=~`${cluster', config.clusterLabel + '=~`${cluster'],
      [', cluster)"', ', ' + config.clusterLabel + ')"'],
    ]));
    local board = std.parseJson(renamed(changed));
    board {
      title: config.dashboardPrefix + super.title,
      tags: config.dashboardTags,
      links: [
        link + if std.get(link, 'type', '') == 'dashboards' then { tags: config.dashboardTags } else {}
        for link in super.links
      ],
      templating+: { list: [
        variable + if variable.name == 'runbook_base' then { query: config.runbookBase } else {}
        for variable in super.list
      ] },
    },

  grafanaDashboards+:: {
    'windowstat-overview.json': dashboard(importstr 'overview.json'),
    'windowstat-resource.json': dashboard(importstr 'resource.json'),
    'windowstat-self.json': dashboard(importstr 'self.json'),
  },

  prometheusRules+:: { groups: groups(importstr 'rules/recording.yaml') },

  prometheusAlerts+:: { groups: groups(importstr 'rules/alerts.yaml') },
}
