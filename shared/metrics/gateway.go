package metrics

// A gateway.
const (
	GatewayRequests   Name = "c2_gateway_requests_total"
	GatewayAccepted   Name = "c2_gateway_accepted_total"
	GatewayUnread     Name = "c2_gateway_unread"
	GatewaySubmitting Name = "c2_gateway_submitting"
	GatewayEnded      Name = "c2_gateway_jobs_ended_total"
	GatewayUpstream   Name = "c2_gateway_upstream_healthy"
)

func gatewayFamilies() []Family {
	return []Family{
		{GatewayRequests, Counter, OfGateway, []string{"kind"}, "Requests for a proof.", ""},
		{GatewayAccepted, Counter, OfGateway, []string{"existing"},
			"Requests that the rack accepted, by whether it had the job already.", ""},
		{GatewayUnread, Gauge, OfGateway, []string{"kind"}, "Requests that wait for their turn and are not read yet.", ""},
		{GatewaySubmitting, Gauge, OfGateway, nil, "Requests on their way to the rack.", ""},
		{GatewayEnded, Counter, OfGateway, []string{"state"},
			"Jobs of the tenant that ended while the gateway was connected.", ""},
		{GatewayUpstream, Gauge, OfGateway, nil, "1 when the upstream answered the last time that it was asked.",
			"while forward.to is set"},
	}
}
